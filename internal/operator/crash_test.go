package operator

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatCountsAsACrash(t *testing.T) {
	ended := func(code int32, after time.Duration, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message, Reason: "Error",
			StartedAt: metav1.NewTime(began), FinishedAt: metav1.NewTime(began.Add(after))}}
	}
	killed := ended(137, time.Second, "")
	killed.Terminated.Reason = "OOMKilled"
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "more"}}
	}
	backOff, last := waiting("CrashLoopBackOff"), ended(1, time.Second, "log\nmachine-controllers: no such flag\n")
	for name, test := range map[string]struct {
		status corev1.ContainerStatus
		want   string
	}{
		"it starts":                   {corev1.ContainerStatus{State: waiting("ContainerCreating")}, ""},
		"it waits to be restarted":    {corev1.ContainerStatus{RestartCount: 2, State: backOff, LastTerminationState: last}, "has crashed 2 times, last with exit code 1: machine-controllers: no such flag"},
		"it has just ended again":     {corev1.ContainerStatus{RestartCount: 3, State: last}, "has crashed 3 times, last with exit code 1: machine-controllers: no such flag"},
		"it says nothing":             {corev1.ContainerStatus{RestartCount: 2, State: backOff, LastTerminationState: killed}, "has crashed 2 times, last with exit code 137 (OOMKilled)"},
		"it was restarted once":       {corev1.ContainerStatus{RestartCount: 1, State: backOff, LastTerminationState: last}, ""},
		"it is ready again":           {corev1.ContainerStatus{RestartCount: 9, Ready: true, LastTerminationState: last}, ""},
		"it lost its lease":           {corev1.ContainerStatus{RestartCount: 9, LastTerminationState: ended(1, time.Hour, "lost")}, ""},
		"an init container ended":     {corev1.ContainerStatus{RestartCount: 2, State: ended(0, time.Second, "")}, ""},
		"its image cannot be pulled":  {corev1.ContainerStatus{State: waiting("ImagePullBackOff")}, "waits with ImagePullBackOff: more"},
		"its first pull is tried yet": {corev1.ContainerStatus{State: waiting("ErrImagePull")}, ""},
	} {
		if got := crashed(test.status); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
