// Package install puts Berth on a running lab the way a user puts it on a
// cluster: images into the nodes, a volume group on each, the chart.
package install
