import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { ConsentDecision, type Session } from '#proto/session/v1/session_pb.js'
import { ConnectionStatus, type Installation } from '#proto/workspace/v1/workspace_pb.js'
import { isOriginAllowed } from '../../contract/origins.ts'
import { timeText } from '../output.ts'
import type { Services } from '../services.ts'

export async function* explainSession(services: Services, sessionId: string): AsyncIterable<string> {
  const { sessions, workspaces } = services
  const { session } = await sessions.getSession({ sessionId })
  if (!session) return
  const { workspaceId, connectionId, publicSiteKey, conversationId, origin, createdAt } = session
  yield `Session ${sessionId} began at ${timeText(createdAt)} on ${origin}. It writes to conversation ${conversationId}.`
  yield stateOf(session)
  yield* await changesOf(services, workspaceId, sessionId)
  yield await presenceOf(services, session)
  const [{ connections }, { installations }] = await Promise.all([
    workspaces.listConnections({ workspaceId }),
    workspaces.listInstallations({ workspaceId }),
  ])
  const connection = connections.find((each) => each.connectionId === connectionId)
  const installation = installations.find((each) => each.publicSiteKey === publicSiteKey)
  const reasons = [...bansOf(session)]
  if (connection?.status === ConnectionStatus.DISABLED)
    reasons.push(
      `Connection ${connectionId} is disabled. Enable it with \`connections status\`.`,
      ...(await changesOf(services, workspaceId, connectionId)),
    )
  if (installation) reasons.push(...refusalsOf(session, installation))
  else reasons.push(`Installation ${publicSiteKey} does not exist any more.`)
  yield* reasons
  if (session.state === 'active' && reasons.length === 0) {
    yield `Nothing that is stored refuses this session. Search the gateways' logs for ${sessionId}: the line "event stream ended" has the reason. If there is no line, run \`doctor --gateway URL --site-key ${publicSiteKey} --origin ${origin}\` with the public URL of the gateways.`
  }
}

const shownChanges = 3

async function changesOf({ workspaces }: Services, workspaceId: string, target: string) {
  const { changes } = await workspaces.listPolicyChanges({ workspaceId, target, limit: shownChanges })
  return changes.map(({ action, actor, at }) => `${actor} called ${action} for ${target} at ${timeText(at)}.`)
}

async function presenceOf({ messaging }: Services, { conversationId }: Session) {
  const { conversation } = await messaging.getConversation({ conversationId })
  if (conversation?.presence === Presence.HERE)
    return 'A page of its conversation has an open stream now, and shows the chat.'
  if (conversation?.presence === Presence.AWAY)
    return 'A page of its conversation has an open stream now, but does not show the chat.'
  return 'No page of its conversation has an open stream now.'
}

function stateOf({ state, expiresAt }: Session) {
  const ended = 'Its grant is refused. The widget offers the visitor a new chat.'
  switch (state) {
    case 'active':
      return `It is active and expires at ${timeText(expiresAt)} unless the page renews it.`
    case 'expired':
      return `It expired at ${timeText(expiresAt)}, because the page did not renew it or its longest lifetime was over. ${ended}`
    case 'closed':
      return `It was closed: the visitor signed in or out, closed it, or its connection was disabled. ${ended}`
    case 'revoked':
      return `An operator or a service revoked it. ${ended}`
    default:
      return `It ended because the visitor was banned. A new session is needed also after the ban is lifted.`
  }
}

function* bansOf({ sessionId, visitorBanned, addressBannedUntil }: Session) {
  const unban = `Lift the ban with \`visitors unban --session ${sessionId}\`.`
  if (visitorBanned) yield `The visitor is banned, so new sessions are refused. ${unban}`
  if (addressBannedUntil)
    yield `The visitor's network address is banned until ${timeText(addressBannedUntil)}. ${unban}`
}

function* refusalsOf({ origin, consent }: Session, installation: Installation) {
  const { publicSiteKey, enabled, origins, consent: policy } = installation
  const agreed = consent?.decision === ConsentDecision.GRANTED && consent.policyVersion === policy?.policyVersion
  if (!enabled) yield `Installation ${publicSiteKey} is disabled.`
  if (!isOriginAllowed(origin, origins))
    yield `Installation ${publicSiteKey} allows ${origins.join(', ') || 'no origin'} only. Add ${origin} to it.`
  if (policy?.required && !agreed)
    yield `Messages are refused until the visitor agrees to version ${policy.policyVersion} of the consent policy. ${consent ? `The latest decision is about version ${consent.policyVersion}, at ${timeText(consent.decidedAt)}.` : 'There is no decision yet.'}`
}
