package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

// Labels, annotations and type of a module's Secrets.
const (
	// SecretType is the type of the Secrets.
	SecretType corev1.SecretType = "machine-iac.io/module"
	// LabelRole is the label that distinguishes a module's Secrets: RoleHead or RolePart.
	LabelRole = "machine-iac.io/module-content"
	// RoleHead marks the Secret that names a module. It is written last: if it exists, so do the
	// parts.
	RoleHead = "head"
	// RolePart marks a further part of content that exceeds one Secret.
	RolePart = "part"
	// LabelName is the label for the module's name.
	LabelName = "machine-iac.io/module-name"
	// AnnotationReference is the annotation for the module's reference, name@sha256:digest.
	AnnotationReference = "machine-iac.io/module"

	annotationArchive = "machine-iac.io/archive-sha256"
	annotationParts   = "machine-iac.io/parts"

	dataArchive  = "module.tar.gz"
	namePrefix   = "machine-iac-module-"
	digestMarker = "@sha256:"
	maxParts     = 64
)

// DigestOf returns the digest of a reference, name@sha256:digest, or "".
func DigestOf(reference string) string {
	_, digest, _ := strings.Cut(reference, digestMarker)
	if raw, err := hex.DecodeString(digest); err != nil || len(raw) != sha256.Size {
		return ""
	}
	return digest
}

// headName returns the name of a module's Secret.
func headName(digest string) string { return namePrefix + digest }

// partName returns the name of the Secret of a part. It contains the archive's checksum, since
// another compressor gives different parts for the same content.
func partName(digest, archive string, index int) string {
	return fmt.Sprintf("%s%s-%s-%d", namePrefix, digest, archive[:12], index)
}

// secretsFor returns the Secrets of a module in the order to write them: the head last.
func secretsFor(namespace string, m *module.Module, options Options) ([]*corev1.Secret, error) {
	var packed bytes.Buffer
	if err := module.WriteArchive(&packed, m.Files()); err != nil {
		return nil, err
	}
	raw := packed.Bytes()
	sum := checksum(raw)
	chunks := slices.Collect(slices.Chunk(raw, options.ChunkBytes))
	if len(chunks) > maxParts {
		return nil, fmt.Errorf("it needs %d Secrets; the maximum is %d", len(chunks), maxParts)
	}
	newSecret := func(name, role string, content []byte) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name,
				Labels:      map[string]string{LabelRole: role, LabelName: m.Name()},
				Annotations: map[string]string{AnnotationReference: m.Reference()},
			},
			Type: SecretType, Immutable: ptr.To(true), Data: map[string][]byte{dataArchive: content},
		}
	}
	var secrets []*corev1.Secret
	for i, content := range chunks[1:] {
		secrets = append(secrets, newSecret(partName(m.Digest(), sum, i+1), RolePart, content))
	}
	head := newSecret(headName(m.Digest()), RoleHead, chunks[0])
	head.Annotations[annotationArchive] = sum
	head.Annotations[annotationParts] = strconv.Itoa(len(chunks))
	if options.Keys != nil {
		head.Annotations[AnnotationSignature] = options.Keys.sign(m.Digest())
	}
	return append(secrets, head), nil
}

// partsOf returns the names of a module's parts from the annotations of its head.
func partsOf(digest string, head *corev1.Secret) (names []string, archive string, err error) {
	archive = head.Annotations[annotationArchive]
	count, err := strconv.Atoi(head.Annotations[annotationParts])
	if err != nil || count < 1 || count > maxParts || len(archive) != hex.EncodedLen(sha256.Size) {
		return nil, "", fmt.Errorf("its annotations %s and %s do not list its parts", annotationParts, annotationArchive)
	}
	for i := 1; i < count; i++ {
		names = append(names, partName(digest, archive, i))
	}
	return names, archive, nil
}

// unpack returns the module in an archive with the checksum. Content that no administrator is known
// to have chosen must meet more rules.
func unpack(raw []byte, archive, digest string, chosen bool) (*module.Module, error) {
	if checksum(raw) != archive {
		return nil, fmt.Errorf("checksum mismatch of its %s", dataArchive)
	}
	files, err := module.ReadArchive(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	restore := load.Restore
	if chosen {
		restore = load.RestoreProven
	}
	restored, err := restore(files)
	if err != nil {
		return nil, err
	}
	if restored.Digest() != digest {
		return nil, fmt.Errorf("its content has the digest %s", restored.Digest())
	}
	return restored, nil
}

func checksum(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
