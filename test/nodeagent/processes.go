package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// finishEvery is how often it is checked whether the API server has the end of a Pod, and finishFor for how long.
	finishEvery = time.Second
	finishFor   = 2 * time.Minute
)

// processes runs Pods of one container each. It implements virtual-kubelet's PodLifecycleHandler and PodNotifier.
type processes struct {
	client kubernetes.Interface
	dir    string

	mu     sync.Mutex
	notify func(*corev1.Pod)
	pods   map[types.NamespacedName]*pod
}

// pod is one that was given to this node.
type pod struct {
	// object is replaced, never changed.
	object *corev1.Pod
	dir    string
	cancel context.CancelFunc // of what it waits for before it runs
	cmd    *exec.Cmd          // nil while it does not run
	ended  chan struct{}
}

func newProcesses(client kubernetes.Interface, dir string) *processes {
	return &processes{client: client, dir: dir, pods: map[types.NamespacedName]*pod{}}
}

func keyOf(object *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
}

// NotifyPods implements PodNotifier.
func (p *processes) NotifyPods(_ context.Context, notify func(*corev1.Pod)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = notify
}

// CreatePod implements PodLifecycleHandler. What the Pod needs may be made after it.
func (p *processes) CreatePod(ctx context.Context, object *corev1.Pod) error {
	if len(object.Spec.Containers) != 1 || len(object.Spec.InitContainers) > 0 {
		return errdefs.InvalidInput("a Pod of this node has one container, and none before it")
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	made := &pod{object: object.DeepCopy(), dir: filepath.Join(p.dir, string(object.UID)), cancel: cancel, ended: make(chan struct{})}
	made.object.Status.Phase = corev1.PodPending
	made.object.Status.HostIP, made.object.Status.PodIP = "127.0.0.1", "127.0.0.1"
	p.mu.Lock()
	p.pods[keyOf(object)] = made
	p.mu.Unlock()
	go p.run(ctx, made)
	return nil
}

// run runs a Pod to its end.
func (p *processes) run(ctx context.Context, of *pod) {
	defer close(of.ended)
	p.report(of, corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}})
	mounts, err := p.mounts(ctx, of)
	if err != nil {
		p.end(of, 128, err.Error())
		return
	}
	log, err := os.Create(filepath.Join(p.dir, of.object.Name+".log"))
	if err != nil {
		p.end(of, 128, err.Error())
		return
	}
	defer log.Close()
	container := of.object.Spec.Containers[0]
	cmd := exec.Command("/proc/self/exe", append(append([]string{insideCommand}, mounts...), append([]string{"--"}, append(container.Command, container.Args...)...)...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/tmp"}
	for _, one := range container.Env {
		cmd.Env = append(cmd.Env, one.Name+"="+one.Value)
	}
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Setpgid: true}
	p.mu.Lock()
	if err = ctx.Err(); err == nil {
		if err = cmd.Start(); err == nil {
			of.cmd = cmd
		}
	}
	p.mu.Unlock()
	if err != nil {
		p.end(of, 128, err.Error())
		return
	}
	p.report(of, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
	err = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if code < 0 {
		code = 137
	}
	if err == nil {
		err = errors.New("")
	}
	p.end(of, code, err.Error())
}

func (p *processes) end(of *pod, code int, message string) {
	phase, reason := corev1.PodSucceeded, "Completed"
	if code != 0 {
		phase, reason = corev1.PodFailed, "Error"
	}
	p.report(of, phase, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, Message: message, FinishedAt: metav1.Now(),
	}})
	go p.finish(of, phase)
}

// finish reports the end of a Pod until the API server has it: a report is refused that brings back what somebody has removed from the Pod's metadata
// meanwhile, as the Job's controller does with its finalizer. Then it removes a Pod that is to be deleted, as a kubelet does; virtual-kubelet has it stay
// for all of its grace.
func (p *processes) finish(of *pod, phase corev1.PodPhase) {
	ctx, cancel := context.WithTimeout(context.Background(), finishFor)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(finishEvery):
		}
		p.mu.Lock()
		reported := of.object.DeepCopy()
		notify := p.notify
		p.mu.Unlock()
		pods := p.client.CoreV1().Pods(reported.Namespace)
		live, err := pods.Get(ctx, reported.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && live.UID != reported.UID:
			return
		case err != nil:
		case live.Status.Phase != phase && notify != nil:
			reported.ObjectMeta = live.ObjectMeta
			notify(reported)
		case live.DeletionTimestamp == nil:
			return // virtual-kubelet removes one at once that is deleted after its end
		default:
			now := int64(0)
			_ = pods.Delete(ctx, live.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(live.UID))}) // it is tried again
		}
	}
}

// report passes the state of a Pod on.
func (p *processes) report(of *pod, phase corev1.PodPhase, state corev1.ContainerState) {
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	p.mu.Lock()
	changed := of.object.DeepCopy()
	changed.Status.Phase = phase
	if changed.Status.StartTime == nil {
		now := metav1.Now()
		changed.Status.StartTime = &now
	}
	container := changed.Spec.Containers[0]
	changed.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container.Name, Image: container.Image, State: state, Ready: phase == corev1.PodRunning, ContainerID: "process://" + string(changed.UID),
	}}
	changed.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready},
	}
	of.object = changed
	notify := p.notify
	p.mu.Unlock()
	if notify != nil {
		notify(changed)
	}
}

// UpdatePod implements PodLifecycleHandler: nothing of a process can be changed.
func (p *processes) UpdatePod(context.Context, *corev1.Pod) error { return nil }

// DeletePod implements PodLifecycleHandler: it returns when the process has ended.
func (p *processes) DeletePod(ctx context.Context, object *corev1.Pod) error {
	p.mu.Lock()
	of := p.pods[keyOf(object)]
	var process *os.Process
	if of != nil && of.cmd != nil {
		process = of.cmd.Process
	}
	p.mu.Unlock()
	if of == nil {
		return errdefs.NotFound("the Pod is not of this node")
	}
	of.cancel()
	if process != nil {
		_ = process.Signal(syscall.SIGTERM)
		grace := 30 * time.Second
		if seconds := object.DeletionGracePeriodSeconds; seconds != nil {
			grace = time.Duration(*seconds) * time.Second
		}
		select {
		case <-of.ended:
		case <-time.After(grace):
			_ = process.Kill() // with it goes everything in its namespace
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	<-of.ended
	p.mu.Lock()
	if p.pods[keyOf(object)] == of {
		delete(p.pods, keyOf(object))
	}
	p.mu.Unlock()
	return os.RemoveAll(of.dir)
}

// GetPod implements PodLifecycleHandler.
func (p *processes) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, known := p.pods[types.NamespacedName{Namespace: namespace, Name: name}]
	if !known {
		return nil, errdefs.NotFound(fmt.Sprintf("there is no Pod %s/%s", namespace, name))
	}
	return of.object.DeepCopy(), nil
}

// GetPodStatus implements PodLifecycleHandler.
func (p *processes) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	object, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &object.Status, nil
}

// GetPods implements PodLifecycleHandler.
func (p *processes) GetPods(context.Context) ([]*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*corev1.Pod
	for _, of := range p.pods {
		all = append(all, of.object.DeepCopy())
	}
	return all, nil
}
