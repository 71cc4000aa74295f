package storetest

var histories = []Case{}
