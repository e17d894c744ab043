package store

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// listPage is the page size of lists.
const listPage = 500

// Tidy removes modules from a namespace that were not needed for the grace period, and returns
// their digests. It stores known modules again that are needed but missing. It signs modules with
// the current key if this program has loaded them, or if they are signed with an earlier key.
func (s *Store) Tidy(ctx context.Context, namespace string, needed func(digest string) bool) (removed []string,
	err error) {
	stored, err := s.list(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, m := range s.forget(namespace, stored) {
		if needed(m.Digest()) {
			failed = append(failed, s.Keep(ctx, namespace, m))
		}
	}
	for at, found := range stored {
		if s.mayBeSigned(at, found) {
			failed = append(failed, s.sign(ctx, at))
		}
		if needed(at.digest) || !s.expire(at) {
			continue
		}
		if err := s.remove(ctx, namespace, found); err != nil {
			failed = append(failed, err)
			continue
		}
		removed = append(removed, at.digest)
	}
	return removed, errors.Join(failed...)
}

// secrets are the Secrets of one module.
type secrets struct {
	head      string
	signature string
	parts     []string
}

// mayBeSigned reports whether a stored module lacks the current key's proof and may get it.
func (s *Store) mayBeSigned(at location, found *secrets) bool {
	if s.options.Keys == nil || found.head != headName(at.digest) {
		return false
	}
	valid, current := s.options.Keys.verify(at.digest, found.signature)
	return !current && (valid || s.options.Known(at.digest))
}

// remove deletes the head first: without it, a module does not exist.
func (s *Store) remove(ctx context.Context, namespace string, found *secrets) error {
	names := found.parts
	if found.head != "" {
		names = append([]string{found.head}, names...)
	}
	for _, name := range names {
		if err := s.delete(ctx, types.NamespacedName{Namespace: namespace, Name: name}); err != nil {
			return err
		}
	}
	return nil
}

// list returns the stored modules of a namespace. It reads metadata only.
func (s *Store) list(ctx context.Context, namespace string) (map[location]*secrets, error) {
	stored := map[location]*secrets{}
	options := &client.ListOptions{Namespace: namespace, Limit: listPage}
	client.HasLabels{LabelRole}.ApplyToList(options)
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := s.client.List(ctx, page, options); err != nil {
			return nil, fmt.Errorf("listing stored modules: %w", err)
		}
		for i := range page.Items {
			object := &page.Items[i]
			digest := DigestOf(object.Annotations[AnnotationReference])
			if digest == "" {
				continue // not, or no longer, this store's: unidentified Secrets are not removed
			}
			at := location{namespace: namespace, digest: digest}
			if stored[at] == nil {
				stored[at] = &secrets{}
			}
			if object.Labels[LabelRole] == RoleHead {
				stored[at].head, stored[at].signature = object.Name, object.Annotations[AnnotationSignature]
			} else {
				stored[at].parts = append(stored[at].parts, object.Name)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return stored, nil
		}
	}
}

// forget removes and returns the modules that were known to be stored but are not.
func (s *Store) forget(namespace string, stored map[location]*secrets) []*module.Module {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []*module.Module
	for at, m := range s.kept {
		if found := stored[at]; at.namespace == namespace && (found == nil || found.head == "") {
			gone = append(gone, m)
			delete(s.kept, at)
		}
	}
	for at := range s.unused {
		if at.namespace == namespace && stored[at] == nil {
			delete(s.unused, at)
		}
	}
	return gone
}

// expire records that nothing needs a module, and reports whether that has been so for the grace
// period. If so, it forgets the module.
func (s *Store) expire(at location) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Clock.Now()
	since, noted := s.unused[at]
	if !noted {
		s.unused[at] = now
		return false
	}
	if now.Sub(since) < s.options.Grace {
		return false
	}
	delete(s.unused, at)
	delete(s.kept, at)
	return true
}
