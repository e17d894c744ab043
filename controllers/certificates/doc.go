// Package certificates approves the certificate requests of kubelets on Machines. It denies none: a
// request that it does not approve stays pending for others, and expires.
//
// A client certificate is for a Node that does not exist yet. It is approved if
//
//   - the requester is in the group system:bootstrappers; if the manager makes bootstrap tokens, it
//     must be the bearer of this very Machine's
//   - subject and usages are exactly those of a kubelet, and there is no other name in it
//   - exactly one Machine has that name, or that internal DNS name or host name
//   - the Machine has an instance and no Node, is not being deleted, and was created at most two hours
//     before the request, unless the manager makes bootstrap tokens, which expire
//   - no other key was approved for that name before
//
// A serving certificate is approved if
//
//   - the requester is the Node itself, and the Node exists
//   - subject and usages are exactly those of a kubelet
//   - exactly one Machine refers to this Node, by UID
//   - each name and IP address in it is an address of the Machine, and no name is one of a Service
//
// No certificate is approved while more requests are pending than Machines explain, or more than five
// for one Node.
//
// # Permissions
//
//   - certificates.k8s.io certificatesigningrequests: get, list, watch
//   - certificates.k8s.io certificatesigningrequests/approval: update
//   - certificates.k8s.io signers kubernetes.io/kube-apiserver-client-kubelet and
//     kubernetes.io/kubelet-serving: approve
//   - machine.openshift.io machines: get, list, watch
//   - core nodes: get
package certificates
