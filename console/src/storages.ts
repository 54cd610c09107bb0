import { storageFor } from '../../browser/storage.ts'

/** The storage of all tabs of the console. If it is blocked, this page keeps the values until it is left. */
export const localStore = storageFor('session', () => localStorage)

/** The storage of this tab. If it is blocked, this page keeps the values until it is left. */
export const tabStore = storageFor('session')
