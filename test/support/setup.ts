// Loaded before the tests: what was started for them is stopped after the last one.

import { afterAll } from 'bun:test'
import { stopPostgres } from './postgres.ts'

afterAll(stopPostgres)
