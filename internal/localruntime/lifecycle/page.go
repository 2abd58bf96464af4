package lifecycle

import (
	"net/http"
	"net/url"
	"strconv"
)

// page is the part of a list that a request asks for.
type page struct{ number, size int }

// readPage reads it, and answers a request that asks for none there can be.
func readPage(w http.ResponseWriter, query url.Values) (page, bool) {
	number, ok := readNumber(query, "page", 1, 1<<31-1)
	if !ok {
		unprocessable(w, "must be a number from 1", "query", "page")
		return page{}, false
	}
	size, ok := readNumber(query, "pageSize", 20, 200)
	if !ok {
		unprocessable(w, "must be a number between 1 and 200", "query", "pageSize")
		return page{}, false
	}
	return page{number, size}, true
}

// readNumber reads a number from 1 to most; missing is for where there is none.
func readNumber(query url.Values, name string, missing, most int) (int, bool) {
	if !query.Has(name) {
		return missing, true
	}
	n, err := strconv.Atoi(query.Get(name))
	return n, err == nil && n >= 1 && n <= most
}

// writePage answers with one page of a list.
func writePage[T any](w http.ResponseWriter, at page, all []T, describe func(T) any) {
	first := min((at.number-1)*at.size, len(all))
	items := []any{}
	for _, item := range all[first:min(first+at.size, len(all))] {
		items = append(items, describe(item))
	}
	pages := (len(all) + at.size - 1) / at.size
	writeJSON(w, http.StatusOK, map[string]any{"items": items, "pagination": map[string]any{
		"page": at.number, "pageSize": at.size, "totalItems": len(all), "totalPages": pages, "hasNextPage": at.number < pages,
	}})
}
