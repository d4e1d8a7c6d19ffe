// Package alerts tests what the chart gives to those who watch Berth: it runs each alert and each
// query of the dashboard through Prometheus' own engine.
//
// testdata has scrapes, which the tests of the metrics themselves compare with what the processes
// show. So a query cannot use a metric or a label that does not exist.
package alerts
