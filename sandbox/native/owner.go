package native

import (
	"bufio"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// owners knows the names of users and groups as this machine's own files tell
// them. A name service would need the C library, which the recorder is built
// without, and would ask programs of the image.
type owners struct {
	mu            sync.Mutex
	users, groups register
}

// register is what one of the two files held when it was last read.
type register struct {
	names   map[uint32]string
	numbers map[string]uint32
	stamp   [2]int64 // time of change and size
	looked  time.Time
}

// The files may have been written by an agent: what is read of them is bounded.
const (
	userFile      = "/etc/passwd"
	groupFile     = "/etc/group"
	maxOwnerBytes = 4 << 20
	lookAgain     = time.Second
)

func (o *owners) user(number uint32) string  { return o.name(&o.users, userFile, number) }
func (o *owners) group(number uint32) string { return o.name(&o.groups, groupFile, number) }

func (o *owners) name(r *register, file string, number uint32) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.refresh(file)
	if name, ok := r.names[number]; ok {
		return name
	}
	return strconv.FormatUint(uint64(number), 10)
}

// number finds a user or a group by its name or number.
func (o *owners) number(field, given string) (int, error) {
	if given == "" {
		return -1, nil // leaves it as it is
	}
	if n, err := strconv.ParseUint(given, 10, 32); err == nil && n < math.MaxUint32 {
		return int(n), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	r, file := &o.users, userFile
	if field == "group" {
		r, file = &o.groups, groupFile
	}
	r.refresh(file)
	if n, ok := r.numbers[given]; ok {
		return int(n), nil
	}
	return 0, sandbox.Invalid(field, strconv.Quote(given)+" is not known in "+file+"; give a name from there, or a number")
}

// refresh reads the file again when it has changed, and looks at most once a
// second whether it has.
func (r *register) refresh(file string) {
	now := time.Now()
	if now.Sub(r.looked) < lookAgain {
		return
	}
	r.looked = now
	f, info, err := openRegular("read owners", unix.AT_FDCWD, file)
	if err != nil {
		r.names, r.numbers, r.stamp = nil, nil, [2]int64{}
		return
	}
	defer f.Close()
	stamp := [2]int64{info.ModTime().UnixNano(), info.Size()}
	if stamp == r.stamp || info.Size() > maxOwnerBytes {
		return
	}
	r.stamp, r.names, r.numbers = stamp, map[uint32]string{}, map[string]uint32{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), ":", 4)
		if len(fields) < 3 || fields[0] == "" {
			continue
		}
		n, err := strconv.ParseUint(fields[2], 10, 32)
		if err != nil {
			continue
		}
		if _, ok := r.names[uint32(n)]; !ok { // the first name of a number counts
			r.names[uint32(n)] = fields[0]
		}
		if _, ok := r.numbers[fields[0]]; !ok {
			r.numbers[fields[0]] = uint32(n)
		}
	}
}

// describe tells what is known of a file.
func (s *Session) describe(name string, info fs.FileInfo) *sandbox.FileInfo {
	result := &sandbox.FileInfo{Path: name, Size: info.Size(), Mode: info.Mode(), Modified: info.ModTime().UTC()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		result.Owner, result.Group = s.owners.user(stat.Uid), s.owners.group(stat.Gid)
	}
	return result
}

// statAt describes what stands at a name of an open directory; a link is
// described, not followed.
func (s *Session) statAt(dir int, name, parent string) (*sandbox.FileInfo, error) {
	var stat unix.Stat_t
	full := path.Join(parent, name)
	if err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: full, Err: err}
	}
	info := &sandbox.FileInfo{
		Path: full, Size: stat.Size, Mode: modeOf(stat.Mode), Modified: time.Unix(stat.Mtim.Unix()).UTC(),
		Owner: s.owners.user(stat.Uid), Group: s.owners.group(stat.Gid),
	}
	if info.Mode&fs.ModeSymlink != 0 {
		target := make([]byte, unix.PathMax)
		if n, err := unix.Readlinkat(dir, name, target); err == nil {
			info.Target = string(target[:n])
		}
	}
	return info, nil
}

// types are the kinds of files as the system numbers them.
var types = map[uint32]fs.FileMode{
	unix.S_IFREG: 0, unix.S_IFDIR: fs.ModeDir, unix.S_IFLNK: fs.ModeSymlink, unix.S_IFIFO: fs.ModeNamedPipe,
	unix.S_IFSOCK: fs.ModeSocket, unix.S_IFBLK: fs.ModeDevice, unix.S_IFCHR: fs.ModeDevice | fs.ModeCharDevice,
}

func modeOf(bits uint32) fs.FileMode {
	mode, ok := types[bits&unix.S_IFMT]
	if !ok {
		mode = fs.ModeIrregular
	}
	mode |= fs.FileMode(bits & 0o777)
	if bits&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if bits&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if bits&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}
