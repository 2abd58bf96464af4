package recorder

import (
	"net/http"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// kept returns the history, or says that it is off.
func (s *Server) kept() (history.Store, error) {
	if s.store == nil {
		return nil, &sandbox.Error{Op: "read history", Code: sandbox.CodeUnsupported, Message: "this sandbox was made with its history off"}
	}
	return s.store, nil
}

func (s *Server) listOperations(w http.ResponseWriter, r *http.Request) error {
	store, err := s.kept()
	if err != nil {
		return err
	}
	filter, err := wire.DecodeFilter(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := store.List(r.Context(), filter)
	if err != nil {
		return err
	}
	return answer(w, page)
}

func (s *Server) getOperation(w http.ResponseWriter, r *http.Request) error {
	store, err := s.kept()
	if err != nil {
		return err
	}
	op, err := store.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return answer(w, op)
}

const maxImport = 1 << 20

// importOperation takes a record that was made where no recorder was: of
// sandbox.create, above all.
func (s *Server) importOperation(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.kept(); err != nil {
		return err
	}
	var op history.Operation
	if err := decode(w, r, maxImport, &op); err != nil {
		return err
	}
	if !history.Final(op.Status) || op.Status == "" {
		return sandbox.Invalid("status", "an operation is imported after its end")
	}
	if op.Duration == 0 {
		op.Duration = time.Duration(op.DurationMS) * time.Millisecond
	}
	add := s.session.Import
	if r.URL.Query().Has(wire.QueryUntold) {
		add = s.session.ImportUntold
	}
	if err := add(r.Context(), &op); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

const maxOutputAnswer = 4 << 20

func (s *Server) readOutput(w http.ResponseWriter, r *http.Request) error {
	store, err := s.kept()
	if err != nil {
		return err
	}
	offset, err := number(r, "offset", 0)
	if err != nil {
		return err
	}
	length, err := number(r, "length", maxOutputAnswer)
	if err != nil {
		return err
	}
	stream := sandbox.Stream(r.URL.Query().Get("stream"))
	if stream != sandbox.Stdout && stream != sandbox.Stderr {
		return sandbox.Invalid("stream", "must be stdout or stderr")
	}
	data, err := store.Output(r.Context(), r.PathValue("id"), stream, offset, min(length, maxOutputAnswer))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the client may have gone
	return nil
}

// readMoments answers how a terminal moved, as lines.
func (s *Server) readMoments(w http.ResponseWriter, r *http.Request) error {
	store, err := s.kept()
	if err != nil {
		return err
	}
	terminals, ok := store.(history.TerminalReader)
	if !ok {
		return &sandbox.Error{Op: "read moments of a terminal", Code: sandbox.CodeUnsupported}
	}
	events, err := terminals.Terminal(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = w.Write(history.EncodeTerminal(events)) // the client may have gone
	return nil
}

const maxWait = time.Minute

func (s *Server) readChanges(w http.ResponseWriter, r *http.Request) error {
	store, err := s.kept()
	if err != nil {
		return err
	}
	query := &history.ChangeQuery{}
	limit, err := number(r, "limit", 0)
	if err != nil {
		return err
	}
	query.Limit = int(limit)
	if query.After, err = number(r, "after", 0); err != nil {
		return err
	}
	if wait := r.URL.Query().Get("wait"); wait != "" {
		if query.Wait, err = time.ParseDuration(wait); err != nil || query.Wait < 0 || query.Wait > maxWait {
			return sandbox.Invalid("wait", "must be a duration of at most a minute, as in 30s")
		}
	}
	feed, err := store.Changes(r.Context(), query)
	if err != nil {
		return err
	}
	return answer(w, feed)
}

func (s *Server) listConsumers(w http.ResponseWriter, r *http.Request) error {
	lister, ok := s.store.(history.ConsumerLister)
	if !ok {
		return &sandbox.Error{Op: "list consumers", Code: sandbox.CodeUnsupported}
	}
	list, err := lister.Consumers(r.Context())
	if err != nil {
		return err
	}
	return answer(w, append([]*history.ConsumerState{}, list...))
}

func (s *Server) acknowledge(w http.ResponseWriter, r *http.Request) error {
	consumer, ok := s.store.(history.Consumer)
	if !ok {
		return &sandbox.Error{Op: "acknowledge", Code: sandbox.CodeUnsupported}
	}
	seq, err := number(r, "seq", 0)
	if err != nil {
		return err
	}
	if err := consumer.Acknowledge(r.Context(), r.PathValue("id"), seq); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) prune(w http.ResponseWriter, r *http.Request) error {
	pruner, ok := s.store.(history.Pruner)
	if !ok {
		return &sandbox.Error{Op: "prune history", Code: sandbox.CodeUnsupported}
	}
	pruned, err := pruner.Prune(r.Context())
	if err != nil {
		return err
	}
	return answer(w, pruned)
}

func (s *Server) configurer() (history.Configurer, error) {
	if _, err := s.kept(); err != nil {
		return nil, err
	}
	configurer, ok := s.store.(history.Configurer)
	if !ok {
		return nil, &sandbox.Error{Op: "configure history", Code: sandbox.CodeUnsupported}
	}
	return configurer, nil
}

func (s *Server) getConfig(w http.ResponseWriter, r *http.Request) error {
	configurer, err := s.configurer()
	if err != nil {
		return err
	}
	config, err := configurer.Config(r.Context())
	if err != nil {
		return err
	}
	return answer(w, config)
}

const maxConfig = 64 << 10

func (s *Server) setConfig(w http.ResponseWriter, r *http.Request) error {
	configurer, err := s.configurer()
	if err != nil {
		return err
	}
	var change history.ConfigChange
	if err := decode(w, r, maxConfig, &change); err != nil {
		return err
	}
	config, err := configurer.SetConfig(r.Context(), &change)
	if err != nil {
		return err
	}
	return answer(w, config)
}
