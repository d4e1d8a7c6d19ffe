package install

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strconv"
	"text/template"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/test/cluster"
)

// Extender is the value that makes the controller serve its extender. It brings
// ExtendedScheduler with it, which needs Scheduler too: it is made of that image.
const Extender = "extender.enabled=true"

// ExtendedScheduler is a scheduler with none of Berth's plugins that asks the
// extender.
const ExtendedScheduler = "stock-with-extender"

// The chart's Service of the extender, and the Secret with its certificate.
const (
	extenderService = "berth-extender"
	extenderSecret  = "berth-extender-tls"
)

func (c Config) extended() bool { return slices.Contains(c.Set, Extender) }

// MakeExtenderSecret makes the certificate that the extender serves with, unless
// it was made before.
func (c Config) MakeExtenderSecret(ctx context.Context, on *cluster.Cluster) error {
	if !c.extended() {
		return nil
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(extenderHost, nil, nil)
	if err != nil {
		return fmt.Errorf("making the extender's certificate: %w", err)
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: extenderSecret},
			Type:       corev1.SecretTypeTLS,
			Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
		},
	} {
		if err := on.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making the extender's certificate: %w", err)
		}
	}
	return nil
}

// extenderHost is the name that the certificate is for. Pods of the lab cannot
// look names up, so the scheduler is told the Service's address and this name.
const extenderHost = extenderService + "." + Namespace + ".svc"

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
  tlsConfig: {serverName: {{ .Host }}, caData: {{ .CA }}}
`))

// MakeExtendedScheduler starts ExtendedScheduler, once the chart is installed.
func (c Config) MakeExtendedScheduler(ctx context.Context, on *cluster.Cluster) error {
	if !c.extended() {
		return nil
	}
	service, secret := &corev1.Service{}, &corev1.Secret{}
	for name, o := range map[string]client.Object{extenderService: service, extenderSecret: secret} {
		if err := on.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, o); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
	}
	var config bytes.Buffer
	if err := extendedConfig.Execute(&config, map[string]string{
		"Name": ExtendedScheduler, "Host": extenderHost, "CA": base64.StdEncoding.EncodeToString(secret.Data[corev1.TLSCertKey]),
		"Address": net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(service.Spec.Ports[0].Port))),
	}); err != nil {
		return fmt.Errorf("writing the configuration of %s: %w", ExtendedScheduler, err)
	}
	for _, o := range []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ExtendedScheduler},
			Data:       map[string]string{"config.yaml": config.String()},
		},
		extendedDeployment(),
	} {
		if err := on.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making %s: %w", ExtendedScheduler, err)
		}
	}
	return nil
}

// extendedDeployment runs with what berth-scheduler may do, which is what any
// scheduler may, and more.
func extendedDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": ExtendedScheduler}
	const directory = "/etc/extended"
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ExtendedScheduler},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "berth-scheduler",
					NodeSelector:       map[string]string{corev1.LabelHostname: controllerNode},
					Containers: []corev1.Container{{
						Name: "scheduler", Image: "localhost/berth/scheduler:lab",
						Args:         []string{"--config=" + directory + "/config.yaml"},
						VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: directory}},
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
							Path: "/readyz", Port: intstr.FromInt32(10259), Scheme: corev1.URISchemeHTTPS,
						}}},
					}},
					Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: ExtendedScheduler},
					}}}},
				},
			},
		},
	}
}
