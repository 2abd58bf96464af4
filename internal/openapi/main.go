// Command openapi prints the OpenAPI document that the server serves, from
// which the page's types are generated.
package main

import (
	"fmt"
	"os"

	"github.com/glassboxhq/glassbox/internal/server"
)

func main() {
	s, err := server.New(&server.Options{})
	if err == nil {
		var document []byte
		if document, err = s.Document(); err == nil {
			_, err = os.Stdout.Write(append(document, '\n'))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}
