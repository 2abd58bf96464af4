package proc

import "syscall"

// Namespaces says how a user starts a process that may mount what nobody else
// sees: root in a mount namespace, everybody else in a user namespace, too, in
// which that user is root and there is no other.
func Namespaces(uid, gid int) *syscall.SysProcAttr {
	// Unshareflags makes the new namespace private before the process starts,
	// which a system refuses that gives user namespaces without rights.
	attr := &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if uid != 0 {
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
	return attr
}
