package v1alpha1

// ConditionReady is the condition of every Berth object that sums the others up.
// It is True when the object can do what it is for, and its reason says why not.
const ConditionReady = "Ready"
