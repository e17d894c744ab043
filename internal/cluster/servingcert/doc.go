// Package servingcert keeps the certificate that webhooks are served with where nobody else does:
// it makes and renews the certificate and the authority that has signed it, and has the API server
// trust that authority.
//
// Both lie in one Secret, which every replica watches and any replica writes; of two that write at
// once one is refused and takes what the other has written. The certificate is served from memory,
// so that a new one is there as soon as the Secret has it. The authority is written into the
// clientConfig.caBundle of the webhook configurations, and again whenever somebody takes it out.
//
// # A change without a gap
//
// A new certificate of the same authority is served at once. A new authority, because the old one
// runs out or because somebody has deleted the Secret, is first trusted beside the old one, for
// [Overlap]; only when the API server has had time to see that are certificates of the new one
// served.
//
// # Why not all of cert-controller
//
// Certificates are made and checked by github.com/open-policy-agent/cert-controller. Its controller
// is left out: it caches every Secret of the namespace, where each Machine has its state, and every
// webhook configuration; it needs the Secret to exist, and a kubelet to write it into files; and it
// trusts a new authority only in place of the old one.
//
// # Permissions
//
//   - secrets, in the own namespace: create; by its name: list, watch, update
//   - admissionregistration.k8s.io mutatingwebhookconfigurations and
//     validatingwebhookconfigurations, by their name: list, watch, patch
package servingcert
