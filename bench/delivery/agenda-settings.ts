import { concurrency } from './contender.ts'

/** How often Agenda looks for jobs, in milliseconds: nothing else makes it look where there are no change streams. */
export const processEveryMs = 100
/** Jobs that it has locked at a time, so that there is some work left until its next look. */
export const lockLimit = 4 * concurrency
