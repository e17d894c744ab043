// Package supervisor ends the engines of a manager that has died or hangs.
//
// A manager has one supervisor: a process of the same program ([Main]) in a session of its own, connected by a pipe. While the manager
// leads, it sends heartbeats ([Supervisor.Heartbeat]). When none has come for the heartbeat timeout, or the manager's end of the pipe is
// closed, the supervisor interrupts every process whose working folder is in the manager's work folder: engines, language hosts,
// plugins and warm providers. It kills what is left after the grace.
//
// A heartbeat carries the time at which the manager looked whether it leads, by a clock that all processes of a machine share and that
// goes on while the machine sleeps. So a heartbeat that was held up counts from then, and a gap is a gap although a heartbeat follows.
// After a gap the supervisor goes on to kill what appears, until the manager, which it notifies, has looked once more whether it leads.
package supervisor
