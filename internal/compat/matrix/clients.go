package matrix

import "slices"

// Client is a public client, and how it is run.
type Client struct {
	Name     string
	Title    string // in the table
	Script   string // in the folder of the scenarios
	Python   string // oldest version that it runs with; "" for a client of Node.js
	Packages []string
	Env      []string
}

const (
	anyPython = "3.11"
	latest    = "deepagents==0.7.32"
)

// Clients lists all, in the order of the table. Versions are exact: a change of
// the results is one of ours.
var Clients = []*Client{
	{
		Name: "sdk", Title: "PyPI `opensandbox` 1.1.1",
		Script: "sdk_async.py", Python: anyPython, Packages: []string{"opensandbox==1.1.1"},
	},
	{
		Name: "sdk-0.1.16", Title: "PyPI `opensandbox` 0.1.16",
		Script: "sdk_async.py", Python: anyPython, Packages: []string{"opensandbox==0.1.16"},
	},
	{
		Name: "cli", Title: "PyPI `opensandbox-cli` 1.1.1",
		Script: "cli.py", Python: anyPython, Packages: []string{"opensandbox-cli==1.1.1", "opensandbox==1.1.1"},
	},
	{
		Name: "mcp", Title: "PyPI `opensandbox-mcp` 1.1.1, with `mcp` 2.3.0",
		Script: "mcp_client.py", Python: anyPython, Packages: mcp,
	},
	{
		Name: "mcp-http", Title: "PyPI `opensandbox-mcp` 1.1.1 over HTTP, two clients at once",
		Script: "mcp_http.py", Python: anyPython, Packages: mcp,
	},
	{
		Name: "node", Title: "npm `@alibaba-group/opensandbox` 0.1.11",
		Script: "sdk.mjs",
	},
	{
		Name: "deepagents-opensandbox", Title: "PyPI `deepagents-opensandbox` 1.0.2",
		Script: "adapters.py", Python: anyPython, Packages: []string{"deepagents-opensandbox==1.0.2", "opensandbox==1.1.1", latest},
		Env: []string{"CL_ADAPTER=da-os"},
	},
	{
		Name: "deepagents-opensandbox-backend", Title: "PyPI `deepagents-opensandbox-backend` 0.1.0",
		Script: "adapters.py", Python: "3.12", Packages: []string{"deepagents-opensandbox-backend==0.1.0", "opensandbox==1.1.1", latest},
		Env: []string{"CL_ADAPTER=da-osb"},
	},
	{
		Name: "langchain-opensandbox", Title: "PyPI `langchain-opensandbox` 0.1.0",
		Script: "adapters.py", Python: anyPython, Packages: []string{"langchain-opensandbox==0.1.0", "opensandbox==1.1.1", "deepagents==0.6.12"},
		Env: []string{"CL_ADAPTER=lc-os"},
	},
	{
		Name: "langchain-sandbox-opensandbox", Title: "PyPI `langchain-sandbox-opensandbox` 0.1.2",
		Script: "adapters.py", Python: anyPython, Packages: langchainSandbox,
		Env: []string{"CL_ADAPTER=lcs-os"},
	},
	{
		Name: "deepagents", Title: "PyPI `deepagents` 0.7.32 doing a code review, every step of which the history then shows",
		Script: "deep_agents.py", Python: anyPython, Packages: langchainSandbox,
	},
	{
		Name: "deepagents-large", Title: "PyPI `deepagents` 0.7.32 with results over its limit, which it keeps as files",
		Script: "large.py", Python: anyPython, Packages: langchainSandbox,
	},
	{
		Name: "seed", Title: "PyPI `agent-sandbox-backends` 0.1.0, one row of the history for each of its operations",
		Script: "seed.py", Python: anyPython, Packages: []string{"agent-sandbox-backends==0.1.0", "opensandbox==0.1.16", "pyyaml==6.0.4"}, // as the tests do
	},
}

var (
	langchainSandbox = []string{"langchain-sandbox-opensandbox==0.1.2", "opensandbox==1.1.1", latest}
	mcp              = []string{"opensandbox-mcp==1.1.1", "opensandbox==1.1.1", "mcp==2.3.0"}
)

// Find returns a client by its name, or nil.
func Find(name string) *Client {
	at := slices.IndexFunc(Clients, func(c *Client) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	return Clients[at]
}
