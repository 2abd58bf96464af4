package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// tunnel answers CONNECT: it joins the client's connection to the target's.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := p.dialHost(r.Context(), "tcp", r.Host)
	if err != nil {
		writeRefusal(w, err)
		return
	}
	defer target.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "glassbox: "+err.Error(), http.StatusInternalServerError)
		return
	}
	defer client.Close()
	if err := client.SetDeadline(time.Time{}); err != nil {
		return
	}
	if _, err := client.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	join(r.Context(), client, io.MultiReader(io.LimitReader(buffered, int64(buffered.Reader.Buffered())), client), target)
}

// join copies both ways until both sides have ended, nothing has moved for
// idleTimeout, or ctx ends. early is what is read from client.
func join(ctx context.Context, client net.Conn, early io.Reader, target net.Conn) {
	closeBoth := func() { client.Close(); target.Close() }
	stop := context.AfterFunc(ctx, closeBoth)
	defer stop()
	idle := time.AfterFunc(idleTimeout, closeBoth)
	defer idle.Stop()
	var both sync.WaitGroup
	both.Go(func() { pump(target, early, idle, closeBoth) })
	both.Go(func() { pump(client, target, idle, closeBoth) })
	both.Wait()
}

func pump(to net.Conn, from io.Reader, idle *time.Timer, abort func()) {
	_, err := io.Copy(to, &watched{from, idle})
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite() // the other direction may go on
	}
	if err != nil {
		abort()
	}
}

// watched is a reader that puts a deadline off with each byte.
type watched struct {
	io.Reader
	idle *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.idle.Reset(idleTimeout)
	}
	return n, err
}

// bounded is a listener with at most so many connections at a time; the next
// one waits in the kernel's queue. It counts those that are open, because the
// server forgets the ones that became tunnels.
type bounded struct {
	net.Listener
	free chan struct{}
	open *sync.WaitGroup
}

func (b *bounded) Accept() (net.Conn, error) {
	b.free <- struct{}{}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	b.open.Add(1)
	return &counted{Conn: conn, of: b}, nil
}

// counted gives its place back when it is closed.
type counted struct {
	net.Conn
	of   *bounded
	once sync.Once
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		<-c.of.free
		c.of.open.Done()
	})
	return err
}

// CloseWrite ends what is sent, and leaves the other direction open.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
