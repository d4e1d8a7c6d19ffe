package install

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"text/template"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"berth.dev/berth/test/cluster"
)

// Extender is the value that makes the controller serve its extender. With it Config also
// installs ExtendedScheduler, which needs the value Scheduler, too: it uses that image.
const Extender = "extender.enabled=true"

// ExtendedScheduler is a scheduler without Berth's plugins that asks the extender.
const ExtendedScheduler = "stock-with-extender"

// extenderSecret has the extender's certificate, clientSecret that of its scheduler.
const (
	extenderSecret = "berth-extender-tls"
	clientSecret   = "berth-extender-client"
)

// extenderPort is the chart's default.
const extenderPort = "8443"

func (c Config) extended() bool { return slices.Contains(c.Set, Extender) }

// MakeExtenderSecrets makes the certificate that the extender serves with and the client
// certificate of its scheduler, unless they exist.
func (c Config) MakeExtenderSecrets(ctx context.Context, on *cluster.Cluster) error {
	if !c.extended() {
		return nil
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(extenderHost, nil, nil)
	if err != nil {
		return fmt.Errorf("making the extender's certificate: %w", err)
	}
	own, ownKey, err := schedulerCertificate()
	if err != nil {
		return fmt.Errorf("making the scheduler's certificate: %w", err)
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: extenderSecret},
			Type:       corev1.SecretTypeTLS,
			Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: clientSecret},
			Type:       corev1.SecretTypeTLS,
			Data:       map[string][]byte{"ca.crt": own, corev1.TLSCertKey: own, corev1.TLSPrivateKeyKey: ownKey},
		},
	} {
		if err := on.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making the extender's certificates: %w", err)
		}
	}
	return nil
}

// schedulerCertificate makes a self-signed certificate: the lab's scheduler is the only
// client that its extender has to know.
func schedulerCertificate() (certificate, key []byte, err error) {
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	signed, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "system:kube-scheduler"}, own)
	if err != nil {
		return nil, nil, err
	}
	if certificate, err = cert.EncodeCertificates(signed); err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(own)
	return certificate, key, err
}

// extenderHost is the name in the certificate. The scheduler's configuration has the controller's
// own address and this name, so that it needs no Service: a lab of an older program has none.
const extenderHost = "berth-extender." + Namespace + ".svc"

var extendedConfig = template.Must(template.New("").Parse(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: {{ .Name }}}]
extenders:
- urlPrefix: https://{{ .Address }}
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 1
  nodeCacheCapable: true
  ignorable: true
  enableHTTPS: true
  tlsConfig: {serverName: {{ .Host }}, caData: {{ .CA }}, certFile: {{ .Own }}/tls.crt, keyFile: {{ .Own }}/tls.key}
`))

// MakeExtendedScheduler starts ExtendedScheduler, once the chart is installed.
func (c Config) MakeExtendedScheduler(ctx context.Context, on *cluster.Cluster) error {
	if !c.extended() {
		return nil
	}
	secret := &corev1.Secret{}
	if err := on.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: extenderSecret}, secret); err != nil {
		return fmt.Errorf("reading the extender's certificate: %w", err)
	}
	address, err := awaitExtender(ctx, on)
	if err != nil {
		return err
	}
	var config bytes.Buffer
	if err := extendedConfig.Execute(&config, map[string]string{
		"Name": ExtendedScheduler, "Host": extenderHost, "Address": address, "Own": certificates,
		"CA": base64.StdEncoding.EncodeToString(secret.Data[corev1.TLSCertKey]),
	}); err != nil {
		return fmt.Errorf("writing the configuration of %s: %w", ExtendedScheduler, err)
	}
	data := map[string]string{"config.yaml": config.String()}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ExtendedScheduler}}
	deployment := &appsv1.Deployment{ObjectMeta: configMap.ObjectMeta}
	_, mapErr := controllerutil.CreateOrUpdate(ctx, on, configMap, func() error { configMap.Data = data; return nil })
	_, err = controllerutil.CreateOrUpdate(ctx, on, deployment, func() error { extend(deployment, address); return nil })
	if err := errors.Join(mapErr, err); err != nil {
		return fmt.Errorf("making %s: %w", ExtendedScheduler, err)
	}
	return nil
}

// awaitExtender waits until the controller is ready, and returns its address.
func awaitExtender(ctx context.Context, on *cluster.Cluster) (address string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	controller := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "berth-controller"}}
	if err := cluster.Await(ctx, on, controller, "ready", ready); err != nil {
		return "", err
	}
	var pods corev1.PodList
	if err := on.List(ctx, &pods, client.InNamespace(Namespace), client.MatchingLabels(controller.Spec.Selector.MatchLabels)); err != nil {
		return "", fmt.Errorf("looking for the controller: %w", err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
			return net.JoinHostPort(pod.Status.PodIP, extenderPort), nil
		}
	}
	return "", errors.New("the controller has no address")
}

// Directories of the scheduler's pod.
const (
	configuration = "/etc/extended"
	certificates  = "/etc/extender"
)

// extend turns a Deployment into one of the scheduler. The scheduler has the rights of
// berth-scheduler: those of any scheduler, and more. A new address makes a new pod, because
// a scheduler reads its configuration once.
func extend(d *appsv1.Deployment, address string) {
	labels := map[string]string{"app": ExtendedScheduler}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels, d.Spec.Template.Annotations = labels, map[string]string{"extender": address}
	d.Spec.Template.Spec = corev1.PodSpec{
		ServiceAccountName: "berth-scheduler",
		NodeSelector:       map[string]string{corev1.LabelHostname: controlNode},
		Tolerations:        []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{
			Name: "scheduler", Image: "localhost/berth/scheduler-1.37:lab",
			Args:         []string{"--config=" + configuration + "/config.yaml"},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: configuration}, {Name: "own", MountPath: certificates, ReadOnly: true}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/readyz", Port: intstr.FromInt32(10259), Scheme: corev1.URISchemeHTTPS,
			}}, TimeoutSeconds: 10}, // a handshake may take longer than the default on an emulated node
		}},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: ExtendedScheduler},
			}}},
			{Name: "own", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: clientSecret}}},
		},
	}
}
