import { randomBytes, randomUUID } from 'node:crypto'
import type { DescMethod, DescMethodStreaming, DescMethodUnary } from '@bufbuild/protobuf'
import { Code, ConnectError, createConnectRouter, createContextValues } from '@connectrpc/connect'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { requestNavigation } from '../commands/commands.ts'
import { readCoreConfig } from '../config.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import { createAttempt } from '../deliveries/deliveries.ts'
import { captureLead } from '../deliveries/lead-capture.ts'
import { defaultPolicy } from '../deliveries/subscription-model.ts'
import { createSubscription } from '../deliveries/subscriptions.ts'
import { newId } from '../ids.ts'
import { addMember } from '../operators/teams.ts'
import { createCoreServices } from '../rpc/router.ts'
import { accessOf } from '../transport/caller.ts'
import { bareCore } from './core-with.ts'
import type { TestCores } from './cores.ts'
import { transportTo } from './transports.ts'
import { site } from './visitor-credentials.ts'

/** Ids of one object of each kind in a workspace. */
export interface Things {
  workspaceId: string
  connectionId: string
  siteKey: string
  sessionId: string
  conversationId: string
  commandId: string
  leadId: string
  subscriptionId: string
  secretId: string
  hookId: string
  hookSecretId: string
  attemptId: string
  erasureId: string
  operatorId: string
  tokenId: string
}

const bySession = ({ sessionId }: Things) => ({ visitor: { by: { case: 'sessionId', value: sessionId } } })

/**
 * A request of each operator method for the objects of one workspace. Every new method needs a line
 * here, so that the isolation of workspaces is tested for it.
 */
export const requests: Record<string, (things: Things) => Record<string, unknown>> = {
  'SessionService.GetSession': ({ sessionId }) => ({ sessionId }),
  'SessionService.RevokeSession': ({ sessionId }) => ({ sessionId }),
  'SessionService.BanVisitor': ({ sessionId }) => ({ sessionId, reason: 'Spam' }),
  'SessionService.UnbanVisitor': ({ sessionId }) => ({ sessionId }),
  'MessagingService.SendAgentMessage': ({ conversationId }) => ({
    conversationId,
    clientOperationId: randomUUID(),
    body: 'Hello',
    agent,
  }),
  'MessagingService.RedactMessage': ({ conversationId }) => ({ conversationId, sequence: 1, agent }),
  'MessagingService.ListMessages': ({ conversationId }) => ({ conversationId }),
  'MessagingService.GetConversation': ({ conversationId }) => ({ conversationId }),
  'MessagingService.ListConversationEvents': ({ conversationId }) => ({ conversationId }),
  'MessagingService.ListConversations': ({ workspaceId }) => ({ workspaceId }),
  'MessagingService.SearchConversations': ({ workspaceId }) => ({ workspaceId, query: 'Hello' }),
  'MessagingService.WatchConversations': ({ workspaceId }) => ({ workspaceId }),
  'MessagingService.SetTyping': ({ conversationId }) => ({ conversationId, state: 1, agent }),
  'MessagingService.UpdateMessageState': ({ conversationId }) => ({ conversationId, upToSequence: 1, state: 'read' }),
  'MessagingService.AssignAgent': ({ conversationId }) => ({ conversationId, agent }),
  'MessagingService.ListAgents': ({ workspaceId }) => ({ workspaceId }),
  'MessagingService.SetAgentPicture': ({ workspaceId }) => ({ workspaceId }),
  'MessagingService.ListSavedReplies': ({ workspaceId }) => ({ workspaceId }),
  'MessagingService.SaveReply': ({ workspaceId }) => ({ workspaceId, shortcut: 'hello', body: 'Good morning' }),
  'MessagingService.DeleteSavedReply': ({ workspaceId }) => ({ workspaceId, shortcut: 'hello' }),
  'MessagingService.UnassignAgent': ({ conversationId }) => ({ conversationId }),
  'MessagingService.CloseConversation': ({ conversationId }) => ({ conversationId }),
  'MessagingService.ReopenConversation': ({ conversationId }) => ({ conversationId }),
  'MessagingService.StopBot': ({ conversationId }) => ({ conversationId }),
  'MessagingService.ResumeBot': ({ conversationId }) => ({ conversationId }),
  'MessagingService.AddTag': ({ conversationId }) => ({ conversationId, tag: 'vip' }),
  'MessagingService.RemoveTag': ({ conversationId }) => ({ conversationId, tag: 'vip' }),
  'MessagingService.ListTags': ({ workspaceId }) => ({ workspaceId }),
  'MessagingService.GetReport': ({ workspaceId }) => ({ workspaceId }),
  'MessagingService.AddNote': ({ conversationId }) => ({
    conversationId,
    clientOperationId: randomUUID(),
    body: 'Call back',
    agent,
  }),
  'MessagingService.ListNotes': ({ conversationId }) => ({ conversationId }),
  'CommandService.RequestNavigation': ({ sessionId }) => ({ sessionId, url: `${site}/a` }),
  'CommandService.RequestScreenshot': ({ sessionId }) => ({ sessionId }),
  'CommandService.CancelCommand': ({ commandId }) => ({ commandId }),
  'CommandService.GetCommand': ({ commandId }) => ({ commandId }),
  'CommandService.ListCommands': ({ sessionId }) => ({ sessionId }),
  'CommandService.GetScreenshot': ({ commandId }) => ({ commandId }),
  'LeadService.CaptureLead': ({ workspaceId }) => ({ workspaceId, source: 'test', fields: { name: 'Ada' } }),
  'LeadService.GetLead': ({ leadId }) => ({ leadId }),
  'LeadService.ListLeads': ({ workspaceId }) => ({ workspaceId }),
  'LeadService.CreateDeliveryAttempt': ({ leadId, subscriptionId }) => ({
    leadId,
    subscriptionId,
    idempotencyKey: randomUUID(),
  }),
  'LeadService.SendTestDelivery': ({ subscriptionId }) => ({ subscriptionId, idempotencyKey: randomUUID() }),
  'LeadService.RetryDeliveryAttempt': ({ attemptId }) => ({ attemptId, idempotencyKey: randomUUID() }),
  'LeadService.RecoverDeliveries': ({ subscriptionId }) => ({ subscriptionId, since: { seconds: 0n }, preview: true }),
  'LeadService.ListDeliveryAttempts': ({ leadId }) => ({ leadId }),
  'LeadService.ListDeliveries': ({ workspaceId }) => ({ workspaceId }),
  'LeadService.CreateSubscription': ({ workspaceId }) => ({ workspaceId, destinationUrl }),
  'LeadService.UpdateSubscription': ({ subscriptionId }) => ({ subscriptionId, automatic: true }),
  'LeadService.RotateSubscriptionSecret': ({ subscriptionId }) => ({ subscriptionId }),
  'LeadService.ActivateSubscriptionSecret': ({ subscriptionId, secretId }) => ({ subscriptionId, secretId }),
  'LeadService.DeleteSubscription': ({ subscriptionId }) => ({ subscriptionId }),
  'LeadService.GetSubscription': ({ subscriptionId }) => ({ subscriptionId }),
  'LeadService.ListSubscriptions': ({ workspaceId }) => ({ workspaceId }),
  'HookService.CreateHook': ({ workspaceId }) => ({
    workspaceId,
    destinationUrl,
    eventTypes: ['subscription.failing'],
  }),
  'HookService.UpdateHook': ({ hookId }) => ({ hookId, maxPerSecond: 1 }),
  'HookService.RotateHookSecret': ({ hookId }) => ({ hookId }),
  'HookService.ActivateHookSecret': ({ hookId, hookSecretId: secretId }) => ({ hookId, secretId }),
  'HookService.DeleteHook': ({ hookId }) => ({ hookId }),
  'HookService.GetHook': ({ hookId }) => ({ hookId }),
  'HookService.ListHooks': ({ workspaceId }) => ({ workspaceId }),
  'EventsService.ListEvents': ({ workspaceId }) => ({ workspaceId }),
  'EventsService.FollowEvents': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.CreateWorkspace': () => ({ name: 'Another' }),
  'WorkspaceService.GetWorkspace': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.UpdateWorkspace': ({ workspaceId }) => ({ workspaceId, name: 'Renamed' }),
  'WorkspaceService.DeleteWorkspace': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.ListTokens': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.RevokeToken': ({ tokenId }) => ({ tokenId }),
  'WorkspaceService.RestoreWorkspace': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.DeleteConnection': ({ connectionId }) => ({ connectionId }),
  'WorkspaceService.DeleteInstallation': ({ siteKey }) => ({ siteKey }),
  'WorkspaceService.CreateConnection': ({ workspaceId }) => ({ workspaceId, name: 'Another' }),
  'WorkspaceService.ListConnections': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.SetConnectionStatus': ({ connectionId }) => ({ connectionId, status: 1 }),
  'WorkspaceService.CreateInstallation': ({ connectionId }) => ({ connectionId, origins: ['https://other.example'] }),
  'WorkspaceService.UpdateInstallation': ({ siteKey }) => ({ siteKey, defaultLocale: 'de' }),
  'WorkspaceService.SetLogo': ({ siteKey }) => ({ siteKey }),
  'WorkspaceService.ListInstallations': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.RotateIdentitySecret': ({ siteKey }) => ({ siteKey }),
  'WorkspaceService.ListWorkspaces': () => ({}),
  'WorkspaceService.AddSuppressions': ({ workspaceId }) => ({ workspaceId, entries: [suppressed] }),
  'WorkspaceService.RemoveSuppressions': ({ workspaceId }) => ({ workspaceId, entries: [suppressed] }),
  'WorkspaceService.ListPolicyChanges': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.ListSuppressions': ({ workspaceId }) => ({ workspaceId }),
  'ConsoleService.CreateSignInLink': ({ workspaceId }) => ({ workspaceId }),
  'OperatorService.ListOperators': ({ workspaceId }) => ({ workspaceId }),
  'OperatorService.InviteOperator': ({ workspaceId }) => ({ workspaceId, role: 3 }),
  'OperatorService.ListInvitations': ({ workspaceId }) => ({ workspaceId }),
  'OperatorService.RevokeInvitation': ({ workspaceId }) => ({ workspaceId, invitationId: 'x' }),
  'OperatorService.SetOperatorRole': ({ workspaceId, operatorId }) => ({ workspaceId, operatorId, role: 2 }),
  'OperatorService.RemoveOperator': ({ workspaceId, operatorId }) => ({ workspaceId, operatorId }),
  'OperatorService.ListSessions': ({ workspaceId }) => ({ workspaceId }),
  'OperatorService.EndSession': ({ workspaceId }) => ({ workspaceId, consoleSessionId: 'x' }),
  'OperatorService.GetOwnAccount': () => ({}),
  'OperatorService.ConfirmOwnMail': () => ({ secret: '-' }),
  'OperatorService.GetOwnNotifications': () => ({}),
  'OperatorService.UpdateOwnNotifications': () => ({ notifications: { detail: 'name' } }),
  'OperatorService.SetPushSubscription': () => ({}),
  'OperatorService.ReportAttention': () => ({ looking: true }),
  'OperatorService.UpdateOwnAccount': () => ({ name: 'Ada' }),
  'OperatorService.BeginPasskey': () => ({ origin: site }),
  'OperatorService.AddPasskey': () => ({ responseJson: '{}', name: 'Key' }),
  'OperatorService.RemovePasskey': () => ({ passkeyId: 'x' }),
  'PrivacyService.ExportVisitor': bySession,
  'PrivacyService.EraseVisitor': bySession,
  'PrivacyService.GetErasure': ({ erasureId }) => ({ erasureId }),
}

const suppressed = { of: { case: 'email', value: 'nobody@example.org' } }
const agent = { displayName: 'Ada' }
const desk = { subject: 'desk' }
/** An IP address, so that the test needs no DNS. */
const destinationUrl = 'https://93.184.216.34/hook'

/** Returns all methods that the core serves, by name: `LeadService.GetLead`. */
export function servedMethods(): [string, DescMethod][] {
  const core = bareCore({ config: readCoreConfig({}), metrics: {} })
  accessOf.set(core, {} as never)
  const served = createConnectRouter({ grpc: false, grpcWeb: false })
  createCoreServices(core).routes(served)
  const methods = served.handlers.map(({ method }) => method)
  return methods.map((method) => [`${method.parent.name}.${method.name}`, method])
}

/** Creates one object of each kind in the workspace of the cores. */
export async function thingsOf(cores: TestCores, sessionId: string, conversationId: string): Promise<Things> {
  const { core, workspaceId, connectionId, publicSiteKey: siteKey } = cores
  const seen = { workspaceId, connectionId, siteKey, sessionId, conversationId }
  await sendAsAgent(core, { conversationId, clientOperationId: randomUUID(), body: 'Hello', agent })
  const { content } = await requestNavigation(core, { sessionId, url: `${site}/a` }, desk)
  const leadId = await captureLead(core, { workspaceId, source: 'test', fields: {} }, undefined)
  const { commandId } = content
  const settings = { workspaceId, destinationUrl, mappedFields: [], automatic: false }
  const { subscriptionId, secretId } = await createSubscription(core, settings, desk)
  const policy = { ...defaultPolicy, types: ['subscription.failing' as const] }
  const hook = await createSubscription(core, { ...settings, policy, resource: 'hook' }, desk)
  const { attempt } = await createAttempt(core, { leadId, subscriptionId, idempotencyKey: randomUUID() }, desk)
  const { attemptId } = attempt
  const { erasureId } = await finishedErasure(cores, workspaceId)
  const operatorId = 'op_viewer'
  await addMember(core, workspaceId, { id: operatorId, name: 'Vera', role: 'viewer' })
  const hookIds = { hookId: hook.subscriptionId, hookSecretId: hook.secretId }
  const tokenId = `tok_${randomBytes(16).toString('base64url')}`
  await core.database.collections.tokens.insertOne({ _id: tokenId, workspaceId, listedAt: new Date() })
  const ids = { subscriptionId, secretId, attemptId, erasureId, operatorId, tokenId }
  return { ...seen, ...hookIds, commandId, leadId, ...ids }
}

/** Creates a finished erasure, so that no job changes it during a test. */
async function finishedErasure({ core }: TestCores, workspaceId: string) {
  const at = new Date()
  const erasureId = newId('ers')
  const erasure = { workspaceId, stage: 'finished' as const, requestedBy: 'desk', requestedAt: at, finishedAt: at }
  await core.database.collections.erasures.insertOne({ _id: erasureId, ...erasure })
  return { erasureId }
}

/** Calls the core and returns the Connect code and the public code. */
export async function call(
  { core }: Pick<TestCores, 'core'>,
  method: DescMethod,
  request: Record<string, unknown>,
  authorization?: string,
  transport = transportTo(core),
): Promise<string> {
  const headers = new Headers(authorization === undefined ? {} : { authorization })
  const stop = new AbortController()
  try {
    if (method.methodKind === 'unary') {
      await transport.unary(method as DescMethodUnary, stop.signal, 20_000, headers, request, createContextValues())
      return 'ok'
    }
    const input = (async function* () {
      yield request
    })()
    const { message } = await transport.stream(
      method as DescMethodStreaming,
      stop.signal,
      20_000,
      headers,
      input,
      createContextValues(),
    )
    await message[Symbol.asyncIterator]().next()
    return 'ok'
  } catch (reason) {
    const error = ConnectError.from(reason)
    return `${Code[error.code]} ${error.findDetails(ErrorInfoSchema)[0]?.code ?? ''}`.trim()
  } finally {
    stop.abort()
  }
}
