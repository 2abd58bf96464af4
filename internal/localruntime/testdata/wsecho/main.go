// Command wsecho is a server for tests, on a port of the loopback: a WebSocket
// that sends back what it gets, and a connection that is HTTP no more.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"

	"github.com/coder/websocket"
)

func main() {
	http.HandleFunc("/echo", echo)
	http.HandleFunc("/count", count)
	http.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) {})
	log.Fatal(http.ListenAndServe("127.0.0.1:9000", nil))
}

// echo closes with a code and a reason when it is told "close CODE REASON".
func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"one", "two"}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	for {
		kind, data, err := conn.Read(r.Context())
		if err != nil {
			log.Printf("client closed with %d", websocket.CloseStatus(err))
			return
		}
		if words := strings.SplitN(string(data), " ", 3); kind == websocket.MessageText && words[0] == "close" {
			code, _ := strconv.Atoi(words[1])
			_ = conn.Close(websocket.StatusCode(code), words[2])
			return
		}
		if conn.Write(r.Context(), kind, data) != nil {
			return
		}
	}
}

// count reads to the end of what comes, and answers after it.
func count(w http.ResponseWriter, _ *http.Request) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: count\r\nConnection: Upgrade\r\n\r\n")
	n, _ := io.Copy(io.Discard, buf)
	fmt.Fprintf(conn, "%d\n", n)
}
