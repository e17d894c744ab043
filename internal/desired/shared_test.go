package desired

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

var sharedName = types.NamespacedName{Namespace: "ns", Name: "credentials"}

// TestASharedReadBeginsAfterAllThatItServesHaveAsked: what was there when somebody asked, or
// something newer, is what is returned.
func TestASharedReadBeginsAfterAllThatItServesHaveAsked(t *testing.T) {
	var shared sharedReads
	var written, reads atomic.Int64
	read := func(context.Context, types.NamespacedName) (*corev1.Secret, error) {
		reads.Add(1)
		secret := &corev1.Secret{}
		secret.Generation = written.Load()
		return secret, nil
	}
	var all sync.WaitGroup
	const askers, times = 10, 200
	for range askers {
		all.Go(func() {
			for range times {
				least := written.Add(1)
				got, err := shared.get(t.Context(), sharedName, read)
				if err != nil || got.Generation < least {
					t.Errorf("read %v (%v), which is from before %d was written", got, err, least)
				}
			}
		})
	}
	all.Wait()
	if reads.Load() > askers*times {
		t.Errorf("%d reads for %d that asked", reads.Load(), askers*times)
	}
}

func TestThoseThatWaitAreServedByOneRead(t *testing.T) {
	var shared sharedReads
	began, release, reads := make(chan struct{}), make(chan struct{}), 0
	read := func(context.Context, types.NamespacedName) (*corev1.Secret, error) {
		if reads++; reads == 1 {
			close(began)
			<-release
		}
		return nil, fmt.Errorf("read %d", reads)
	}
	results := make(chan error, 11)
	ask := func() {
		_, err := shared.get(t.Context(), sharedName, read)
		results <- err
	}
	go ask()
	<-began
	for range 10 {
		mine := shared.join(t.Context(), sharedName, read)
		go func() { results <- (<-mine).Err }()
	}
	close(release)
	got := map[string]int{}
	for range 11 {
		got[(<-results).Error()]++
	}
	if got["read 1"] != 1 || got["read 2"] != 10 {
		t.Errorf("the reads served %v, want one and ten", got)
	}
}

func TestWhoGivesUpLeavesTheReadToTheOthers(t *testing.T) {
	var shared sharedReads
	release := make(chan struct{})
	read := func(ctx context.Context, _ types.NamespacedName) (*corev1.Secret, error) {
		<-release
		return &corev1.Secret{}, ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := shared.join(ctx, sharedName, read)
	gaveUp := errors.New("gave up")
	cancel(gaveUp)
	if _, err := shared.get(ctx, sharedName, read); !errors.Is(err, gaveUp) {
		t.Errorf("who gave up gets %v", err)
	}
	close(release)
	if others := <-mine; others.Err != nil {
		t.Errorf("the others get %v", others.Err)
	}
}
