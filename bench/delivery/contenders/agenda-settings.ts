import { concurrency } from './contender.ts'

/** Agenda's poll interval in milliseconds. Without change streams, polling is its only trigger. */
export const processEveryMs = 100
/** Number of jobs that Agenda locks at a time: enough work until the next poll. */
export const lockLimit = 4 * concurrency
