import type { Document, WriteConcernSettings } from 'mongodb'

/**
 * The write concern under which an acknowledged write survives the loss of any process, for the server that gave
 * this answer to `hello`: journaled, and on a replica set or cluster held by the majority.
 *
 * The embedded engine must not be asked for a majority: it then answers before the journal is written, and loses up
 * to 100 ms of acknowledged writes when it is killed. With `w: 1` it waits for the journal and loses none.
 */
export const durableWriteConcern = (hello: Document): WriteConcernSettings =>
  hello.setName !== undefined || hello.msg === 'isdbgrid' ? { w: 'majority', journal: true } : { w: 1, journal: true }
