// Runs the test with more visitors.
import './core-killed.test.ts'
