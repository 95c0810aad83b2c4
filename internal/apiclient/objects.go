package apiclient

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// requestTimeout bounds a single read, its retries included.
const requestTimeout = 15 * time.Second

// Surroundings is what goes into every manifest of this node.
type Surroundings struct {
	ServiceHost, ServicePort string // of the Service default/kubernetes, which pods find in KUBERNETES_SERVICE_*
	KubeletVersion           string // of this node, such as v1.37.2
}

// Surroundings reads them. The node's own credential may.
func (c *Client) Surroundings(ctx context.Context) (Surroundings, error) {
	service, err := get[*corev1.Service](ctx, c, "services", metav1.NamespaceDefault, "kubernetes")
	if err != nil {
		return Surroundings{}, err
	}
	node, err := c.node(ctx)
	if err != nil {
		return Surroundings{}, err
	}
	found := Surroundings{ServiceHost: service.Spec.ClusterIP, KubeletVersion: node.Status.NodeInfo.KubeletVersion}
	for _, port := range service.Spec.Ports {
		if port.Name == "https" || found.ServicePort == "" {
			found.ServicePort = strconv.Itoa(int(port.Port))
		}
	}
	return found, nil
}

// NodeUID is the UID of this node's own Node object, by a consistent read.
func (c *Client) NodeUID(ctx context.Context) (string, error) {
	node, err := c.node(ctx)
	if err != nil {
		return "", err
	}
	if node.UID == "" {
		return "", fmt.Errorf("the API server's Node %s has no UID", node.Name)
	}
	return string(node.UID), nil
}

func (c *Client) node(ctx context.Context) (*corev1.Node, error) {
	return get[*corev1.Node](ctx, c, "nodes", "", c.config.NodeName)
}

// LivePods lists this node's pods by a consistent read, not from any cache.
func (c *Client) LivePods(ctx context.Context) ([]*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := fetch[*corev1.PodList](ctx, c.pods(c.reading(), metav1.ListOptions{}))
	if err == nil && list.ResourceVersion == "" {
		err = errors.New("the list has no version: it is none of an API server's")
	}
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", c.config.NodeName, err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		if list.Items[i].Spec.NodeName == c.config.NodeName {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// References reads what a pod refers to, and what of the pod itself the watch can't tell. What the API server says does
// not exist is absent from the answer; anything else that can't be read is an error.
func (c *Client) References(ctx context.Context, pod *corev1.Pod) (manifest.References, error) {
	unknown, err := c.unknownFields(ctx, pod)
	if err != nil {
		return manifest.References{}, err
	}
	refs := manifest.References{
		ConfigMaps: make(map[string]*corev1.ConfigMap),
		Secrets:    make(map[string]*corev1.Secret),
		PVCs:       make(map[string]*corev1.PersistentVolumeClaim),
		PVs:        make(map[string]*corev1.PersistentVolume),
		Unknown:    unknown,
	}
	for _, need := range manifest.Needs(pod) {
		if err := c.reference(ctx, need, &refs); err != nil {
			return refs, err
		}
	}
	return refs, nil
}

// unknownFields reads the pod, in this version or a later one, as JSON: the watch speaks protobuf, whose decoder skips
// the fields of a newer API server in silence.
func (c *Client) unknownFields(ctx context.Context, pod *corev1.Pod) (manifest.Unknown, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer := c.reading().Get().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		VersionedParams(&metav1.GetOptions{ResourceVersion: pod.ResourceVersion}, scheme.ParameterCodec).
		SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx)
	var found *corev1.Pod
	var unknown manifest.Unknown
	data, err := answer.Raw()
	if err == nil {
		found, unknown, err = manifest.Decode(data)
	} else {
		err = answer.Error() // what the server says of it, which Raw leaves in the answer
	}
	if err == nil && found.UID != pod.UID {
		err = errors.New("another one has its name")
	}
	if err != nil {
		return manifest.Unknown{}, fmt.Errorf("read the pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return unknown, nil
}

func (c *Client) reference(ctx context.Context, need manifest.Reference, refs *manifest.References) error {
	switch need.Kind {
	case "ConfigMap":
		return keep(ctx, c, "configmaps", need, refs.ConfigMaps)
	case "Secret":
		return keep(ctx, c, "secrets", need, refs.Secrets)
	case "PersistentVolumeClaim":
		if err := keep(ctx, c, "persistentvolumeclaims", need, refs.PVCs); err != nil {
			return err
		}
		claim := refs.PVCs[need.Name]
		if claim == nil || claim.Spec.VolumeName == "" {
			return nil
		}
		return keep(ctx, c, "persistentvolumes", manifest.Reference{Kind: "PersistentVolume", Name: claim.Spec.VolumeName}, refs.PVs)
	default:
		return fmt.Errorf("unknown kind of reference %q", need.Kind)
	}
}

// object is one of the API.
type object interface {
	runtime.Object
	metav1.Object
}

// keep reads one object into the map, by its name, if it exists.
func keep[T object](ctx context.Context, c *Client, resource string, need manifest.Reference, into map[string]T) error {
	found, err := get[T](ctx, c, resource, need.Namespace, need.Name)
	if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) { // the latter: not by an API server
		return nil
	}
	if err == nil {
		into[need.Name] = found
	}
	return err
}

func get[T object](ctx context.Context, c *Client, resource, namespace, name string) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request := c.reading().Get().Resource(resource).Name(name)
	if namespace != "" {
		request = request.Namespace(namespace)
	}
	found, err := fetch[T](ctx, request)
	if err == nil && found.GetName() != name {
		err = fmt.Errorf("the server answers with one of the name %q", found.GetName())
	}
	if err != nil {
		return found, fmt.Errorf("read %s %s/%s: %w", resource, namespace, name, err)
	}
	return found, nil
}

// fetch reads an answer of the kind that was asked for. rest.Result.Into would take one of any other kind, and leave the
// object as empty as if the server had said so.
func fetch[T runtime.Object](ctx context.Context, request *rest.Request) (T, error) {
	var none T
	answer, err := request.Do(ctx).Get()
	if err != nil {
		return none, err
	}
	found, ok := answer.(T)
	if !ok {
		return none, fmt.Errorf("asked for a %T, the server answers with a %T", none, answer)
	}
	return found, nil
}
