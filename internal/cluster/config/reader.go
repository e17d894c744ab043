package config

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const (
	// defaultMaxAge is how old settings may get before they are read again.
	defaultMaxAge = 30 * time.Second
	// readTimeout bounds the reading of all objects.
	readTimeout = 10 * time.Second
)

// Where OpenShift keeps the objects.
var (
	clusterWide = types.NamespacedName{Name: "cluster"}
	trustedCA   = types.NamespacedName{Namespace: "openshift-config-managed", Name: "trusted-ca-bundle"}
	cloudConfig = types.NamespacedName{Namespace: "openshift-config-managed", Name: "kube-cloud-config"}
)

// Options are what a Reader works with. Client and Dir must be set.
type Options struct {
	// Client reads the API server itself, never a cache. It must know config.openshift.io/v1 and
	// Kubernetes' own types.
	Client client.Reader
	// Dir is a folder for the file with the certificate authorities. It is the Reader's own, and made
	// when it is needed.
	Dir string
	// Given are names of environment variables that are set elsewhere, so that the cluster's are not;
	// in capitals or not.
	Given []string
	// Installation is the UID of the operator's installation, which modules may know with what the
	// cluster says; empty where it is not known.
	Installation string
	// MaxAge is how old settings may get before they are read again; half a minute when zero.
	MaxAge time.Duration
	// SystemAuthorities are files of which the first that is there has the system's certificate
	// authorities; the usual ones when nil.
	SystemAuthorities []string
	// Clock is the system's when nil.
	Clock clock.PassiveClock
	// Logger logs what has changed, and what cannot be used.
	Logger logr.Logger
}

// Reader returns the settings of a cluster, at most MaxAge old.
type Reader struct {
	client client.Reader
	given  []string
	maxAge time.Duration
	clock  clock.PassiveClock
	logger logr.Logger
	// installation is the UID of the operator's installation.
	installation string

	mu     sync.Mutex
	bundle bundle
	// last are the settings that were read last, and at is when that was tried; known says that they
	// have been read.
	last  Settings
	at    time.Time
	known bool
}

// New makes a Reader. It fails when an option that must be set is missing.
func New(o Options) (*Reader, error) {
	if o.Client == nil || o.Dir == "" {
		return nil, errors.New("making the reader of the cluster's configuration: an option that must be set is missing")
	}
	// Engines run elsewhere.
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("making the reader of the cluster's configuration: %w", err)
	}
	if o.MaxAge == 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.SystemAuthorities == nil {
		o.SystemAuthorities = systemFiles()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Reader{
		client: o.Client, given: o.Given, installation: o.Installation, maxAge: o.MaxAge, clock: o.Clock, logger: o.Logger,
		bundle: bundle{dir: dir, system: o.SystemAuthorities},
	}, nil
}

// Settings returns the cluster's settings. While they are unreadable, it returns the last known
// ones, or an error if there are none.
func (r *Reader) Settings(ctx context.Context) (Settings, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current(ctx)
}

// Cluster returns what modules may know of the cluster.
func (r *Reader) Cluster(ctx context.Context) (*module.Cluster, error) {
	settings, err := r.Settings(ctx)
	return settings.Cluster, err
}

// Environment returns what a run sees of the cluster, given the variables of its module, and what
// of it must not be shown.
func (r *Reader) Environment(ctx context.Context,
	variables []v1alpha1.EnvironmentVariable) (environment map[string]string, sensitive []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	settings, err := r.current(ctx)
	if err != nil {
		return nil, nil, err
	}
	file, err := r.bundle.file(settings.Authorities)
	if err != nil {
		return nil, nil, err
	}
	return settings.Environment(variables, file, r.given), settings.Sensitive(), nil
}

// current returns the settings. The caller holds the lock.
func (r *Reader) current(ctx context.Context) (Settings, error) {
	now := r.clock.Now()
	if r.known && now.Sub(r.at) < r.maxAge {
		return r.last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := r.read(ctx)
	switch {
	case err != nil && !r.known:
		return Settings{}, err
	case err != nil:
		r.logger.Error(err, "The cluster's configuration cannot be read; what was read last holds")
		r.at = now
		return r.last, nil
	}
	settings := settingsOf(found)
	settings.Cluster.Installation = r.installation
	if !r.known && found.infrastructure != nil || r.known && !reflect.DeepEqual(settings, r.last) {
		r.log(settings)
	}
	r.last, r.at, r.known = settings, now, true
	return settings, nil
}

func (r *Reader) log(s Settings) {
	r.logger.Info("Taking the cluster's configuration", "clusterValues", s.ClusterValues,
		"proxy", s.HTTPProxy != "" || s.HTTPSProxy != "", "authorities", s.Authorities != "", "settings", len(s.values))
	for _, problem := range s.unusable {
		r.logger.Info("A part of the cluster's configuration cannot be used", "problem", problem)
	}
}

// read reads the objects. A cluster without an Infrastructure is not OpenShift, so it reads nothing
// else there.
func (r *Reader) read(ctx context.Context) (objects, error) {
	var found objects
	var err error
	if found.infrastructure, err = get(ctx, r.client, clusterWide, &configv1.Infrastructure{}); err != nil ||
		found.infrastructure == nil {
		return objects{}, err
	}
	if found.proxy, err = get(ctx, r.client, clusterWide, &configv1.Proxy{}); err != nil {
		return objects{}, err
	}
	if found.proxy != nil && found.proxy.Spec.TrustedCA.Name != "" {
		if found.trustedCA, err = get(ctx, r.client, trustedCA, &corev1.ConfigMap{}); err != nil {
			return objects{}, err
		}
	}
	if found.cloudConfig, err = get(ctx, r.client, cloudConfig, &corev1.ConfigMap{}); err != nil {
		return objects{}, err
	}
	return found, nil
}

// get returns an object, or nil if it, or its kind, does not exist.
func get[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, object T) (T, error) {
	var none T
	err := reader.Get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return none, nil
	case apierrors.IsForbidden(err):
		return none,
			fmt.Errorf("reading the cluster's configuration: %w; let the manager get it, as install/controllers/rbac does", err)
	case err != nil:
		return none, fmt.Errorf("reading the cluster's configuration: %w", err)
	}
	return object, nil
}
