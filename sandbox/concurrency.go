package sandbox

import (
	"strconv"
	"time"
)

// Concurrency bounds what works at once in one sandbox, whoever asks for it.
// Others wait for their turn, first come first served. A zero field is the
// default that stands beside it.
type Concurrency struct {
	// Commands that are neither detached nor on a terminal; 4, at most 256.
	Commands int `json:"max_parallel_commands,omitempty"`
	// Reads of files, of lists and of what is searched; 32, at most 1024.
	Reads int `json:"max_parallel_file_reads,omitempty"`
	// Writes of files, moves and removals; 8, at most 256.
	Writes int `json:"max_parallel_file_writes,omitempty"`
	// Uploads of trees; 1, at most 64.
	Uploads int `json:"max_parallel_uploads,omitempty"`
	// QueueTimeout is how long a turn is waited for; 60 s. UploadQueueTimeout
	// is that of an upload; 300 s. At most an hour.
	QueueTimeout       time.Duration `json:"queue_timeout,omitempty"`
	UploadQueueTimeout time.Duration `json:"upload_queue_timeout,omitempty"`
}

const maxQueueTimeout = time.Hour

// Filled returns c with its defaults; of nil, all of them.
func (c *Concurrency) Filled() Concurrency {
	filled := Concurrency{}
	if c != nil {
		filled = *c
	}
	for _, f := range filled.numbers() {
		if *f.value == 0 {
			*f.value = f.normal
		}
	}
	if filled.QueueTimeout == 0 {
		filled.QueueTimeout = time.Minute
	}
	if filled.UploadQueueTimeout == 0 {
		filled.UploadQueueTimeout = 5 * time.Minute
	}
	return filled
}

// Validate tells the first bound that cannot be, with its field and rule.
func (c *Concurrency) Validate() error {
	if c == nil {
		return nil
	}
	for _, f := range c.numbers() {
		if *f.value < 0 || *f.value > f.most {
			return Invalid(f.name, "must be 1 to "+strconv.Itoa(f.most)+", or 0 for "+strconv.Itoa(f.normal))
		}
	}
	if c.QueueTimeout < 0 || c.QueueTimeout > maxQueueTimeout {
		return Invalid("queue_timeout", "must be positive and at most an hour, or 0 for a minute")
	}
	if c.UploadQueueTimeout < 0 || c.UploadQueueTimeout > maxQueueTimeout {
		return Invalid("upload_queue_timeout", "must be positive and at most an hour, or 0 for five minutes")
	}
	return nil
}

type bound struct {
	name         string
	value        *int
	normal, most int
}

func (c *Concurrency) numbers() []bound {
	return []bound{
		{"max_parallel_commands", &c.Commands, 4, 256},
		{"max_parallel_file_reads", &c.Reads, 32, 1024},
		{"max_parallel_file_writes", &c.Writes, 8, 256},
		{"max_parallel_uploads", &c.Uploads, 1, 64},
	}
}
