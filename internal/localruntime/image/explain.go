package image

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// explain makes what a registry answers shorter, and keeps what is secret in
// it out: an URL to a blob may hold a signature.
func explain(err error) error {
	e, ok := errors.AsType[*transport.Error](err)
	if !ok {
		return &unsigned{err}
	}
	var texts []string
	for _, d := range e.Errors {
		texts = append(texts, short(strings.ToLower(string(d.Code))+": "+d.Message))
	}
	why := strings.TrimSuffix(fmt.Sprintf("the registry answers %d %s (%s", e.StatusCode, http.StatusText(e.StatusCode), strings.Join(texts, "; ")), " (")
	if len(texts) > 0 {
		why += ")"
	}
	switch e.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		why += "; there is no such image, or it needs credentials, which docker login leaves where they are found"
	case http.StatusNotFound:
		why += "; it has no such image"
	}
	return errors.New(why)
}

// unsigned is an error without what stands behind the question marks of URLs.
type unsigned struct{ err error }

var query = regexp.MustCompile(`\?[^"\s]+`)

func (u *unsigned) Error() string { return query.ReplaceAllString(u.err.Error(), "?…") }
func (u *unsigned) Unwrap() error { return u.err }
