package matrix

import "slices"

// Failure is a step of which it is known that it fails, and why.
type Failure struct {
	Step    string
	Clients []string
	Reason  string
}

// Known lists what fails, directly as by proxy.
var Known = []Failure{
	{"isolation-caps", []string{"sdk", "sdk-0.1.16"}, "a sandbox has no isolated sessions inside, and says so: it is the isolation itself"},
	{"run-argv", []string{"sdk-0.1.16"}, "this version of the client has no `argv`"},
}

// Why says why a step of a client fails; "" is for one that should not.
func (c *Client) Why(step string) string {
	for _, k := range Known {
		if k.Step == step && slices.Contains(k.Clients, c.Name) {
			return k.Reason
		}
	}
	return ""
}
