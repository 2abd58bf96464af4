package redact

import (
	"bytes"
	"slices"
	"unicode"
)

// The detectors.
const (
	CloudKeyID       = "cloud_key_id"       // id of a cloud access key
	GitToken         = "git_token"          // of a Git host
	PEMKey           = "pem_key"            // private key in PEM: its body
	JWT              = "jwt"                // JSON web token
	BearerHeader     = "bearer_header"      // what follows "Bearer"
	URLPassword      = "url_password"       // the password in scheme://user:password@host
	ModelProviderKey = "model_provider_key" // API key of a model provider
	ChatToken        = "chat_token"         // of a chat service, or its web hook
)

// Detectors lists the names of the detectors.
func Detectors() []string {
	return []string{CloudKeyID, GitToken, PEMKey, JWT, BearerHeader, URLPassword, ModelProviderKey, ChatToken}
}

// set is a set of bytes.
type set [4]uint64

func (s *set) has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }

// setOf takes ranges in pairs, as in "azAZ".
func setOf(ranges string) *set {
	s := &set{}
	for i := 0; i+1 < len(ranges); i += 2 {
		for b := int(ranges[i]); b <= int(ranges[i+1]); b++ {
			s[b>>6] |= 1 << (b & 63)
		}
	}
	return s
}

var (
	upper   = setOf("AZ09")
	alnum   = setOf("azAZ09")
	word    = setOf("azAZ09__")
	base64u = setOf("azAZ09__--")
	hexa    = setOf("09af")
	bearer  = setOf("azAZ09..__~~++//==--::")
	token   = setOf("azAZ09__--..")
	userinf = setOf("!!$&(.09;;==AZ__az~~::%%@@[[]]^^||{{}}\x80\xff") // as people write them, too
)

// rule is one form of secret: a literal, and what follows it. Unless it has a
// function of its own, that is a run of min to max bytes of a set.
type rule struct {
	detector string
	anchor   string
	run      *set
	min, max int  // max 0: none
	apart    *set // the byte before must not be of it; nil: any may be
	keep     bool // the literal is not masked
	// random tells a secret from words that follow the literal, by the first of
	// the run. What it finds it also finds in more of the run.
	random func(run []byte) bool
	find   func(b []byte, last bool) finding
}

// finding is what a rule says of the place where its literal begins.
type finding struct {
	verdict    verdict
	start, end int  // to be masked
	run        *set // goes on being masked
	body       bool // the body of a key follows
}

type verdict int

const (
	miss verdict = iota
	hit
	more // cannot be told without more bytes
)

// The bounds of what a rule looks at before it decides.
const (
	maxHeader   = 2048 // of a JSON web token's first part
	maxUserinfo = 512
	maxRandom   = 128 // of a run that may be words
	maxDetected = maxHeader + 64
	maxBody     = 16 << 10 // of a key
)

var rules = slices.Concat(
	like(rule{detector: CloudKeyID, run: upper, min: 16, max: 16, apart: upper}, "AKIA", "ASIA", "AROA", "AIDA", "AGPA", "ANPA", "ABIA", "ACCA"),
	like(rule{detector: CloudKeyID, run: base64u, min: 35, max: 35, apart: word}, "AIza"),
	like(rule{detector: CloudKeyID, run: alnum, min: 12, max: 26, apart: alnum}, "LTAI"),
	like(rule{detector: CloudKeyID, run: alnum, min: 32, max: 32, apart: alnum}, "AKID"),
	like(rule{detector: GitToken, run: alnum, min: 36}, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
	like(rule{detector: GitToken, run: word, min: 22}, "github_pat_"),
	like(rule{detector: GitToken, run: base64u, min: 20}, "glpat-"),
	[]*rule{{detector: PEMKey, anchor: "-----BEGIN ", find: findKey}},
	[]*rule{{detector: JWT, anchor: "eyJ", apart: alnum, find: findJWT}},
	keeping(like(rule{detector: BearerHeader, run: bearer, min: 20, apart: alnum, random: likeToken}, "Bearer ", "bearer ", "BEARER ")),
	[]*rule{{detector: URLPassword, anchor: "://", find: findPassword}},
	like(rule{detector: ModelProviderKey, run: base64u, min: 32, apart: base64u, random: likeKey}, "sk-"),
	like(rule{detector: ModelProviderKey, run: alnum, min: 40, apart: alnum}, "gsk_", "pplx-"),
	like(rule{detector: ModelProviderKey, run: alnum, min: 30, apart: word}, "hf_", "r8_"),
	like(rule{detector: ModelProviderKey, run: alnum, min: 60, apart: base64u}, "xai-"),
	like(rule{detector: ChatToken, run: base64u, min: 20}, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-"),
	keeping(like(rule{detector: ChatToken, run: setOf("azAZ09//"), min: 30}, "hooks.slack.com/services/")),
	keeping(like(rule{detector: ChatToken, run: setOf("09af--"), min: 32, max: 36}, "/bot/v2/hook/")),
	keeping(like(rule{detector: ChatToken, run: hexa, min: 64, max: 64}, "access_token=")),
	[]*rule{{detector: ChatToken, anchor: ":AA", run: base64u, min: 32, max: 34}}, // of Telegram, behind the bot's number
)

// like makes a rule for each literal.
func like(form rule, anchors ...string) []*rule {
	list := make([]*rule, len(anchors))
	for i, anchor := range anchors {
		r := form
		r.anchor = anchor
		list[i] = &r
	}
	return list
}

func keeping(list []*rule) []*rule {
	for _, r := range list {
		r.keep = true
	}
	return list
}

// try looks at the place where b begins; prev is the byte before.
func (r *rule) try(b []byte, prev byte, last bool) finding {
	if !begins(b, r.anchor, last) || r.apart != nil && r.apart.has(prev) {
		return finding{}
	}
	if len(b) < len(r.anchor) {
		return finding{verdict: more}
	}
	if r.find != nil {
		return r.find(b, last)
	}
	return r.follow(b, last)
}

// follow looks at the run behind the literal.
func (r *rule) follow(b []byte, last bool) finding {
	begin, limit := len(r.anchor), len(b)
	if r.max > 0 { // one more tells that the run is too long
		limit = min(limit, begin+r.max+1)
	}
	end := until(b, begin, r.run, limit)
	n := end - begin
	open := end == len(b) && !last // it may go on
	switch {
	case r.max > 0 && n > r.max:
		return finding{}
	case open && (n < r.min || r.max > 0):
		return finding{verdict: more}
	case n < r.min:
		return finding{}
	case r.random != nil && !r.random(b[begin:min(end, begin+maxRandom)]):
		if open && n < maxRandom {
			return finding{verdict: more}
		}
		return finding{}
	}
	f := finding{verdict: hit, end: end}
	if r.keep {
		f.start = begin
	}
	if r.max == 0 {
		f.run = r.run
	}
	return f
}

// likeKey reports whether a run is a key rather than a name with hyphens, as of
// a class in CSS: a key has a long part of letters and digits.
func likeKey(run []byte) bool {
	return slices.ContainsFunc(parts(run), func(p []byte) bool { return len(p) >= 12 && mixed(p) })
}

// likeToken reports whether a run is a token rather than words or an address: a
// token has a part with digits in it, or with letters that change their case
// more often than words do.
func likeToken(run []byte) bool {
	if at := bytes.Index(run, []byte("://")); at >= 0 && at < 8 {
		return false
	}
	return slices.ContainsFunc(parts(run), func(p []byte) bool { return len(p) >= 8 && (bytes.ContainsAny(p, "0123456789") || turns(p) >= 4) })
}

// parts are the letters and digits of a run, between its other signs.
func parts(run []byte) [][]byte {
	return bytes.FieldsFunc(run, func(c rune) bool { return c > 0x7f || !alnum.has(byte(c)) })
}

func mixed(part []byte) bool {
	return bytes.ContainsAny(part, "0123456789") && bytes.ContainsFunc(part, unicode.IsLetter)
}

// turns counts the places where a small letter is followed by a capital.
func turns(part []byte) (n int) {
	for i := 1; i < len(part); i++ {
		if unicode.IsLower(rune(part[i-1])) && unicode.IsUpper(rune(part[i])) {
			n++
		}
	}
	return n
}

// until returns where a run of a set ends, at most at limit.
func until(b []byte, i int, s *set, limit int) int {
	for i < len(b) && i < limit && s.has(b[i]) {
		i++
	}
	return i
}

// findJWT finds two parts that are JSON objects in base64, and all that
// follows.
func findJWT(b []byte, last bool) finding {
	const least = 10 // of a part
	dot := until(b, 0, base64u, maxHeader)
	switch {
	case dot == len(b) && !last:
		return finding{verdict: more}
	case dot == len(b), dot < least, b[dot] != '.':
		return finding{}
	}
	end := until(b, dot+1, base64u, dot+1+least)
	const second = "eyJ"
	for i := range min(len(second), end-dot-1) {
		if b[dot+1+i] != second[i] {
			return finding{}
		}
	}
	switch {
	case end == dot+1+least:
		return finding{verdict: hit, end: end, run: token}
	case end == len(b) && !last:
		return finding{verdict: more}
	}
	return finding{}
}

// findPassword finds the password of a URL: what stands between the first
// colon and the last @ before the host ends.
func findPassword(b []byte, last bool) finding {
	const begin = len("://")
	end := until(b, begin, userinf, begin+maxUserinfo)
	if end == len(b) && !last && end < begin+maxUserinfo {
		return finding{verdict: more}
	}
	colon := bytes.IndexByte(b[begin:end], ':')
	at := begin + bytes.LastIndexByte(b[begin:end], '@')
	if colon < 0 || at <= begin+colon+1 {
		return finding{}
	}
	return finding{verdict: hit, start: begin + colon + 1, end: at}
}

// findKey finds the first line of a private key; its body follows.
func findKey(b []byte, last bool) finding {
	const begin, most, dashes = len("-----BEGIN "), 64, "-----"
	title := setOf("AZ09  ")
	end := until(b, begin, title, begin+most)
	rest := b[end:]
	switch {
	case !begins(rest, dashes, last), end == begin+most:
		return finding{}
	case len(rest) < len(dashes):
		return finding{verdict: more}
	case !bytes.Contains(b[begin:end], []byte("PRIVATE KEY")):
		return finding{}
	}
	end += len(dashes)
	return finding{verdict: hit, start: end, end: end, body: true}
}
