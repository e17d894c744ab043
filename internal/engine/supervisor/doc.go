// Package supervisor stops the engines of a manager that has died or hangs.
//
// A manager has one supervisor: a process of the same program ([Main]) in its own session,
// connected by a pipe. While the manager leads, it sends heartbeats ([Supervisor.Heartbeat]). If
// none arrives within the heartbeat timeout, or the manager's end of the pipe closes, the
// supervisor interrupts every process of the manager: engines, language hosts, plugins and warm
// providers. After the grace period, it kills what is left. It finds the processes by their working
// folder, which is in the manager's work folder, and by the mark of their sandbox ([sandbox.Mark]),
// which they cannot remove.
//
// A heartbeat carries the time at which the manager checked that it leads, by a clock that all
// processes of a machine share and that continues while the machine sleeps. So a delayed heartbeat
// counts from then, and a gap remains a gap even if a heartbeat follows. After a gap, the
// supervisor kills whatever appears until the manager, which it notifies, has checked again that it
// leads.
package supervisor
