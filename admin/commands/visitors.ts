import { setTimeout as delay } from 'node:timers/promises'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { ErasureState, type VisitorSchema } from '#proto/privacy/v1/privacy_pb.js'
import { command, type Group, must, text, UsageError, type Values } from '../command.ts'
import { yes } from './flags.ts'

const session = text('one of the visitor’s sessions', 'sessionId')
const visitor = {
  session,
  workspace: text('the workspace, with --subject', 'workspaceId'),
  subject: text('the host’s id of a verified visitor, with --workspace'),
}

const pollMs = 500

function visitorOf(given: Values<typeof visitor>): MessageInitShape<typeof VisitorSchema> {
  if (given.sessionId !== undefined) return { by: { case: 'sessionId', value: given.sessionId } }
  return { by: { case: 'subject', value: subjectOf(given) } }
}

function subjectOf({ subject, workspaceId = '' }: Values<typeof visitor>) {
  if (subject === undefined) throw new UsageError('name the visitor: --session, or --workspace and --subject')
  return { workspaceId, externalSubject: subject }
}

function secondsOf(hours: string) {
  if (!/^\d{1,3}$/.test(hours)) throw new UsageError('--address-hours must be a whole number of 1 to 720')
  return Number(hours) * 3600
}

export const visitors: Group = {
  revoke: command({
    summary: 'End one session of a visitor; the visitor can begin a new one',
    flags: { session: must(session) },
    run: ({ sessions }, given) => sessions.revokeSession(given),
  }),
  ban: command({
    summary: 'Ban a visitor: end all sessions and refuse new ones',
    flags: {
      session: must(session),
      reason: text('for the record, at most 512 characters'),
      'address-hours': {
        ...text('also ban the network address, and everyone there, for 1 to 720 hours', 'addressBanSeconds'),
        read: secondsOf,
      },
    },
    run: ({ sessions }, given) => sessions.banVisitor(given),
  }),
  unban: command({
    summary: 'Unban a visitor: allow new sessions again',
    flags: visitor,
    run: async ({ sessions }, given) =>
      sessions.unbanVisitor(
        given.sessionId === undefined ? { subject: subjectOf(given) } : { sessionId: given.sessionId },
      ),
  }),
  export: command({
    summary: 'Export all stored data of a visitor as lines of JSON',
    flags: visitor,
    async *run({ privacy }, given) {
      for await (const { line } of privacy.exportVisitor({ visitor: visitorOf(given) })) yield line
    },
  }),
  erase: command({
    summary: 'Erase all stored data of a visitor and wait for the result',
    flags: { ...visitor, yes },
    async run({ privacy }, { yes, ...given }) {
      const name = visitorOf(given)
      if (!yes) throw new UsageError('an erasure cannot be undone; confirm with --yes')
      let { erasure } = await privacy.eraseVisitor({ visitor: name })
      while (erasure?.state === ErasureState.RUNNING) {
        await delay(pollMs)
        erasure = (await privacy.getErasure({ erasureId: erasure.erasureId })).erasure
      }
      return erasure
    },
  }),
  erasure: command({
    summary: 'Show the state of an erasure',
    flags: { erasure: must(text('the erasure’s id', 'erasureId')) },
    run: async ({ privacy }, given) => (await privacy.getErasure(given)).erasure,
  }),
}
