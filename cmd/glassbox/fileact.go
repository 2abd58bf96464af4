package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/glassboxhq/glassbox/history"
)

// fileFacts are what the history tells of an act on files, beside the file.
type fileFacts struct {
	Pattern     string  `json:"pattern"`
	Mode        *uint32 `json:"mode"`
	Owner       string  `json:"owner"`
	Group       string  `json:"group"`
	Recursive   bool    `json:"recursive"`
	Line        int64   `json:"line"`
	Lines       int64   `json:"lines"`
	Count       *int64  `json:"count"`
	Files       int64   `json:"files"`
	Uploaded    *int64  `json:"uploaded_files"`
	Directories int64   `json:"directories"`
	Links       int64   `json:"links"`
	Replaced    int64   `json:"replaced"`
	Size        *int64  `json:"size"`
	Truncated   bool    `json:"truncated"`
}

// fileAct tells an act on files in one line.
func fileAct(op *history.Operation) string {
	var asked, done fileFacts
	_ = json.Unmarshal(op.Request, &asked) // what cannot be read is not told
	_ = json.Unmarshal(op.Result, &done)
	where := plain(op.File.Path)
	switch op.Type {
	case history.FileMove:
		return plain(op.File.OldPath) + " → " + where
	case history.FileGlob:
		return fmt.Sprintf("%s in %s%s", plain(asked.Pattern), where, found(&done, "found"))
	case history.FileGrep:
		return fmt.Sprintf("%q in %s%s", asked.Pattern, where, found(&done, "matches"))
	case history.FileSetMode:
		return where + changes(&asked)
	case history.FileUpload:
		if done.Uploaded != nil && done.Size != nil {
			where += fmt.Sprintf("  %s, %s, %s, %s", number(*done.Uploaded, "file"), number(done.Directories, "folder"), number(done.Links, "link"), amount(*done.Size))
		}
		return where
	case history.FileDownload:
		if done.Size != nil {
			where += "  " + amount(*done.Size)
		}
		return where
	case history.FileRead:
		if asked.Line > 0 || asked.Lines > 0 {
			where += fmt.Sprintf("  from line %d", max(asked.Line, 1))
		}
	}
	if op.File.AfterSize != nil {
		where += fmt.Sprintf("  %d bytes", *op.File.AfterSize)
	}
	return where + changed(op.File)
}

// found tells how much a search has found.
func found(done *fileFacts, what string) string {
	switch {
	case done.Count == nil:
		return ""
	case done.Truncated:
		return fmt.Sprintf("  %d %s, and there are more", *done.Count, what)
	}
	return fmt.Sprintf("  %d %s", *done.Count, what)
}

// changes tells what of a file was to be set.
func changes(asked *fileFacts) (text string) {
	if asked.Mode != nil {
		text += "  " + fs.FileMode(*asked.Mode).String()
	}
	if asked.Owner != "" || asked.Group != "" {
		text += "  " + plain(asked.Owner+":"+asked.Group)
	}
	if asked.Recursive {
		text += "  and all below"
	}
	return text
}

// changed counts the lines of a diff.
func changed(f *history.File) string {
	added, removed := 0, 0
	for line := range strings.Lines(f.Diff) {
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	if added+removed == 0 {
		return ""
	}
	more := ""
	if f.DiffTruncated {
		more = " and more"
	}
	return fmt.Sprintf("  +%d -%d lines%s", added, removed, more)
}

// showDiff prints what an act changed in a text.
func (a *app) showDiff(op *history.Operation) {
	if op.File == nil || op.File.Diff == "" {
		return
	}
	fmt.Fprintln(a.page, "  diff")
	for line := range strings.Lines(op.File.Diff) {
		text := plain(strings.TrimRight(line, "\r\n"))
		switch {
		case strings.HasPrefix(line, "+"):
			text = a.paint(green, text)
		case strings.HasPrefix(line, "-"):
			text = a.paint(red, text)
		}
		fmt.Fprintf(a.page, "    %s\n", text)
	}
	if op.File.DiffTruncated {
		fmt.Fprintln(a.page, "    … the diff was cut")
	}
}
