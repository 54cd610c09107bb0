import { afterAll, inject } from 'vitest'
import { keepOutputIn, stopStarted } from './processes.ts'

// Vitest runs this file before each test file.
keepOutputIn(inject('processOutput'))
afterAll(stopStarted)
