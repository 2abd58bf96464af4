package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/sandbox"
)

const readyTimeout = 2 * time.Second

// health answers those who look after the server.
func (s *Server) health() {
	tell := func(status int, fields map[string]string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(fields) // the client may have gone
		}
	}
	s.router.Get("/healthz", tell(http.StatusOK, map[string]string{"status": "healthy"}))
	s.router.Get("/version", tell(http.StatusOK, map[string]string{"version": s.opts.Version}))
	ready := tell(http.StatusOK, map[string]string{"status": "ready"})
	unready := tell(http.StatusServiceUnavailable, map[string]string{"status": "the database does not answer"})
	s.router.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := s.opts.DB.Ping(ctx); err != nil {
			s.opts.Logger.WarnContext(ctx, "not ready", "error", err)
			unready(w, r)
			return
		}
		ready(w, r)
	})
	s.guarded("/metrics", "metrics", s.metrics.handler.ServeHTTP)
}

// metrics count what the server does. Labels have few values: no path and no
// name that a client chose.
type metrics struct {
	handler  http.Handler
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	denied   *prometheus.CounterVec
}

func newMetrics(s *Server) *metrics {
	registry := prometheus.NewRegistry()
	m := &metrics{
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "glassbox_http_requests_total", Help: "Requests that were answered, by operation and status.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "glassbox_http_request_seconds", Help: "How long requests took, streams left out.", Buckets: []float64{.001, .005, .025, .1, .5, 2, 10},
		}, []string{"operation"}),
		denied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "glassbox_http_refused_total", Help: "Requests that were refused at the door, by the reason.",
		}, []string{"code"}),
	}
	streams := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "glassbox_streams_open", Help: "Streams of events that are open."},
		func() float64 { return float64(len(s.streams)) })
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "glassbox_build_info", Help: "Always 1; the labels tell what runs.", ConstLabels: prometheus.Labels{"version": s.opts.Version},
	})
	build.Set(1)
	registry.MustRegister(m.requests, m.seconds, m.denied, streams, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// lasting are the operations that take as long as their client stays.
var lasting = map[string]bool{"follow-operations": true, "follow-all": true, "opensandbox": true, "port": true, "follow-command": true, "use-terminal": true}

func (m *metrics) note(v *visit, status int, took time.Duration) {
	operation := v.operation
	if operation == "" {
		operation = "other"
	}
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	if !lasting[operation] {
		m.seconds.WithLabelValues(operation).Observe(took.Seconds())
	}
	switch sandbox.Code(v.code) {
	case codeHost, codeOrigin, codePlain, codeForbidden, door.CodeSignIn, door.CodeSignInNeeded, door.CodeToken, door.CodeTooMany:
		m.denied.WithLabelValues(v.code).Inc()
	}
}
