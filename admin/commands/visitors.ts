import { setTimeout as delay } from 'node:timers/promises'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { ErasureState, type VisitorSchema } from '#proto/privacy/v1/privacy_pb.js'
import { command, type Group } from '../command.ts'
import { UsageError } from '../usage.ts'

const session = { type: 'string', required: true, description: 'one of the visitor’s sessions' } as const
const visitor = {
  session: { type: 'string', description: 'one of the visitor’s sessions' },
  workspace: { type: 'string', description: 'the workspace, with --subject' },
  subject: { type: 'string', description: 'the host’s id of a verified visitor, with --workspace' },
} as const

/** Milliseconds between checks of a running erasure. */
const pollMs = 500

interface GivenVisitor {
  session: string | undefined
  workspace: string | undefined
  subject: string | undefined
}

function visitorOf(given: GivenVisitor): MessageInitShape<typeof VisitorSchema> {
  if (given.session !== undefined) return { by: { case: 'sessionId', value: given.session } }
  return { by: { case: 'subject', value: subjectOf(given) } }
}

function subjectOf({ subject, workspace = '' }: GivenVisitor) {
  if (subject === undefined) throw new UsageError('name the visitor: --session, or --workspace and --subject')
  return { workspaceId: workspace, externalSubject: subject }
}

function secondsOf(hours: string | undefined): number | undefined {
  if (hours === undefined) return undefined
  if (!/^\d{1,3}$/.test(hours)) throw new UsageError('--address-hours must be a whole number of 1 to 720')
  return Number(hours) * 3600
}

export const visitors: Group = {
  revoke: command({
    summary: 'End one session of a visitor; the visitor can begin a new one',
    flags: { session },
    run: ({ sessions }, { session }) => sessions.revokeSession({ sessionId: session }),
  }),
  ban: command({
    summary: 'Ban a visitor: end all sessions and refuse new ones',
    flags: {
      session,
      reason: { type: 'string', description: 'for the record, at most 512 characters' },
      'address-hours': {
        type: 'string',
        field: 'addressBanSeconds',
        description: 'also ban the network address, and everyone there, for 1 to 720 hours',
      },
    },
    run: ({ sessions }, { session, reason = '', 'address-hours': hours }) =>
      sessions.banVisitor({ sessionId: session, reason, addressBanSeconds: secondsOf(hours) }),
  }),
  unban: command({
    summary: 'Unban a visitor: allow new sessions again',
    flags: visitor,
    async run({ sessions }, given) {
      const { session: sessionId } = given
      const name = sessionId === undefined ? { subject: subjectOf(given) } : { sessionId }
      return sessions.unbanVisitor(name)
    },
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
    flags: { ...visitor, yes: { type: 'boolean', description: 'required, because it cannot be undone' } },
    async run({ privacy }, { yes = false, ...given }) {
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
    flags: { erasure: { type: 'string', required: true, description: 'the erasure’s id' } },
    run: async ({ privacy }, { erasure: erasureId }) => {
      const { erasure } = await privacy.getErasure({ erasureId })
      return erasure
    },
  }),
}
