import { setTimeout as delay } from 'node:timers/promises'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { ErasureState, type VisitorSchema } from '#proto/privacy/v1/privacy_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { call, command, type Group, must, text, UsageError, type Values } from '../command.ts'
import { yes } from './flags.ts'

const rpc = SessionService.method

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
  revoke: call(rpc.revokeSession, { session: must(session) }),
  ban: call(rpc.banVisitor, {
    session: must(session),
    reason: text('for the record, at most 512 characters'),
    'address-hours': {
      ...text('also ban the network address, and everyone there, for 1 to 720 hours', 'addressBanSeconds'),
      read: secondsOf,
    },
  }),
  unban: command(visitor, async ({ sessions }, given) =>
    sessions.unbanVisitor(
      given.sessionId === undefined ? { subject: subjectOf(given) } : { sessionId: given.sessionId },
    ),
  ),
  export: command(visitor, async function* ({ privacy }, given) {
    for await (const { line } of privacy.exportVisitor({ visitor: visitorOf(given) })) yield line
  }),
  erase: command({ ...visitor, yes }, async ({ privacy }, { yes, ...given }) => {
    const name = visitorOf(given)
    if (!yes) throw new UsageError('an erasure cannot be undone; confirm with --yes')
    let { erasure } = await privacy.eraseVisitor({ visitor: name })
    while (erasure?.state === ErasureState.RUNNING) {
      await delay(pollMs)
      erasure = (await privacy.getErasure({ erasureId: erasure.erasureId })).erasure
    }
    return erasure
  }),
  erasure: command(
    { erasure: must(text('the erasure’s id', 'erasureId')) },
    async ({ privacy }, given) => (await privacy.getErasure(given)).erasure,
  ),
}
