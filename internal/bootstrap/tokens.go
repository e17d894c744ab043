package bootstrap

import (
	"context"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

const (
	// Label marks the Secrets of bootstrap tokens that this operator makes.
	Label = "machine-iac.io/bootstrap-token"

	namePrefix = "bootstrap-token-"
	purpose    = "bootstrap-token"
	idLength   = 6
	length     = idLength + 16
	base       = 36 // digits and lower-case letters
)

// groupFormat is what the API server accepts as a group of a bootstrap token.
var groupFormat = regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`)

// CheckGroup returns an error unless bootstrap tokens can have a group.
func CheckGroup(group string) error {
	if !groupFormat.MatchString(group) {
		return fmt.Errorf("invalid group %q: must be system:bootstrappers:NAME, such as "+
			"system:bootstrappers:kubeadm:default-node-token", group)
	}
	return nil
}

// Options configures Tokens. All are required unless a default is named.
type Options struct {
	// Client writes to the API server.
	Client       client.Writer
	Installation *installation.Installation
	// Groups are the groups of the tokens, besides system:bootstrappers. Without any, no tokens are
	// made.
	Groups []string
	// Lifetime is how long a token can be used after the start of the run that creates the instance.
	Lifetime time.Duration
	// Clock defaults to the system clock.
	Clock clock.PassiveClock
}

// Tokens makes the bootstrap tokens of Machines.
type Tokens struct {
	client       client.Writer
	installation *installation.Installation
	groups       []string
	lifetime     time.Duration
	clock        clock.PassiveClock
}

// New returns Tokens.
func New(options Options) *Tokens {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Tokens{client: options.Client, installation: options.Installation, groups: options.Groups,
		lifetime: options.Lifetime, clock: options.Clock}
}

// Identity returns the UID that the Machine's token is derived from: the one that its instance was created
// with, which is another Machine's after a restore.
func (t *Tokens) Identity(machine *machinev1beta1.Machine) types.UID {
	if w := record.WitnessOf(machine, t.installation); w != nil && w.IdentityUID != "" {
		return w.IdentityUID
	}
	return machine.UID
}

// User returns the name that the API server gives to the bearer of the Machine's token. It is no
// secret.
func (t *Tokens) User(machine *machinev1beta1.Machine) string {
	return "system:bootstrap:" + t.token(t.Identity(machine)).id
}

// Publish makes the token of an identity usable from now on for its lifetime. An earlier Secret is
// replaced, because updating it would need the permission to read it.
func (t *Tokens) Publish(ctx context.Context, machine types.NamespacedName, uid types.UID) error {
	own := t.token(uid)
	if err := t.remove(ctx, own); err != nil {
		return err
	}
	secret := own.secret()
	secret.StringData = map[string]string{
		"token-id": own.id, "token-secret": own.key,
		"expiration":                     t.clock.Now().Add(t.lifetime).UTC().Format(time.RFC3339),
		"description":                    "Made by machine-iac-operator for Machine " + machine.String(),
		"usage-bootstrap-authentication": "true",
		"usage-bootstrap-signing":        "true", // kubeadm finds the cluster by a signature
		"auth-extra-groups":              strings.Join(t.groups, ","),
	}
	return failed("making", t.client.Create(ctx, secret))
}

// Remove revokes the token of an identity, if it has one.
func (t *Tokens) Remove(ctx context.Context, uid types.UID) error { return t.remove(ctx, t.token(uid)) }

func (t *Tokens) remove(ctx context.Context, own token) error {
	return failed("removing", client.IgnoreNotFound(t.client.Delete(ctx, own.secret())))
}

func failed(doing string, err error) error {
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; apply install/bootstrap-tokens", err)
	}
	if err != nil {
		err = fmt.Errorf("%s the Machine's bootstrap token: %w", doing, err)
	}
	return err
}

// token is a bootstrap token: a public ID and a secret key.
type token struct{ id, key string }

// String returns the token as kubelets present it.
func (t token) String() string { return t.id + "." + t.key }

func (t token) secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: namePrefix + t.id,
			Labels: map[string]string{Label: "true"}},
		Type: corev1.SecretTypeBootstrapToken,
	}
}

func (t *Tokens) token(uid types.UID) token {
	digits := new(big.Int).SetBytes(t.installation.Derive(purpose, string(uid))).Text(base)
	digits = strings.Repeat("0", length) + digits
	digits = digits[len(digits)-length:]
	return token{id: digits[:idLength], key: digits[idLength:]}
}
