package main

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/connection"
)

var _, _ connection.Porter = (*localService)(nil), (*remoteService)(nil)

// Port implements connection.Porter.
func (s *localService) Port(_ context.Context, id string, port int) (*connection.Port, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return s.DialPort(ctx, id, port) }
	return &connection.Port{
		URL:       "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Transport: &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: 10 * time.Second},
	}, nil
}

// Port implements connection.Porter.
func (s *remoteService) Port(ctx context.Context, id string, port int) (*connection.Port, error) {
	at, err := s.Endpoint(ctx, id, port)
	if err != nil {
		return nil, err
	}
	return &connection.Port{URL: at.URL, Header: at.Header, Transport: s.Client().Transport, OwnHost: true}, nil
}
