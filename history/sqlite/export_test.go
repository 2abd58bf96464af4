package sqlite

// SetCheckpointPages makes the log move into the file after so many pages.
func (o *Options) SetCheckpointPages(n int) { o.checkpointPages = n }

// SetPhase lets a test know what the writer does next.
func (o *Options) SetPhase(phase func(string)) { o.phase = phase }

// Schema is the text that makes a history, for a comparison without the store.
const Schema = schema
