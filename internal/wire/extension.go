package wire

// The extension fields by which our local runtime, and a later gateway, take
// and tell what the OpenSandbox lifecycle API has no place for. Other services
// ignore them.
const (
	ExtName    = "glassbox.name"    // the exact name, of any script
	ExtWorkdir = "glassbox.workdir" // absolute path
	ExtNetwork = "glassbox.network" // none or proxy
	ExtHistory = "glassbox.history" // none: the history is off; best_effort: what cannot be recorded runs all the same
	// ExtHistoryConfig says what the history keeps, as the JSON of a
	// history.Config.
	ExtHistoryConfig = "glassbox.history_config"
	// ExtConcurrency bounds what works at once, as the JSON of a
	// sandbox.Concurrency.
	ExtConcurrency = "glassbox.concurrency"
	ExtFileChanges = "glassbox.file_changes" // off: what commands do to files is not looked for

	ExtHere     = "glassbox.here"     // "true": no isolation
	ExtWarnings = "glassbox.warnings" // of an answer, a JSON list: what was asked and is not held
)

// Metadata keys that the Python SDK uses too.
const (
	MetaName     = "agent_sandbox.name"
	MetaInstance = "sandbox_instance_id"
)

// HeaderCode carries our own code of an error of the lifecycle API.
const HeaderCode = "X-Glassbox-Code"
