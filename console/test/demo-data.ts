import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AttemptPhase, DeliveryStatus, FailureReason, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { DisabledReason, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { at, type FakeCore } from './fake-core.ts'

/** Fills the fake core with typical conversations, leads and deliveries of a shop. */
export async function addDemoData({ conversations, visitors, workspace, leads, report }: FakeCore) {
  report.add()
  const maria = { identityState: 'verified', displayName: 'Maria Huber', externalSubject: 'customer-4711' }
  const tags = ['vip', 'exchange']
  conversations.add({ conversationId: 'cnv_maria', sessionId: 'ses_maria', visitor: maria, tags })
  conversations.past('cnv_maria', 'visitor', 'Hello! I ordered the blue jacket last week.', 90_400, 'read')
  conversations.past('cnv_maria', 'agent', 'Good morning, Maria. I see it: it left our store yesterday.', 90_200)
  conversations.past('cnv_maria', 'visitor', 'Wonderful. Do you ship to Graz as well, for a friend?', 540, 'read')
  conversations.past('cnv_maria', 'agent', 'We do. It takes two days, and from 60 euros on it is free.', 500)
  conversations.past('cnv_maria', 'agent', 'See https://shop.example/shipping for all the countries.', 480)
  conversations.past('cnv_maria', 'visitor', 'And if it does not fit?', 60)
  visitors.addSession({
    sessionId: 'ses_maria',
    conversationId: 'cnv_maria',
    visitorId: 'vis_maria',
    locale: 'de-AT',
    identityState: 'verified',
    displayName: maria.displayName,
    externalSubject: maria.externalSubject,
    verifiedAt: at(800),
    context: { plan: 'gold', orders: 12 },
    pageContext: {
      url: 'https://shop.example/jackets/alpine-blue',
      title: 'Alpine jacket, blue',
      referrer: 'https://search.example',
      viewport: { width: 1280, height: 720 },
    },
    pageContextAt: at(45),
  })
  const others: [string, string, number, ('visitor' | 'agent')?, string?][] = [
    ['cnv_x7f3', 'The code WINTER does not work for me', 200],
    ['cnv_p2k9', 'Thank you, that was quick!', 2400, 'visitor', 'read'],
    ['cnv_m4t1', 'Your parcel is on its way; here is the number: 1Z 999.', 5200, 'agent'],
    ['cnv_b8w5', 'Is the showroom open on Saturday?', 9000, 'visitor', 'read'],
    ['cnv_q1z6', 'كم تكلفة الشحن إلى دبي؟', 100_000, 'visitor', 'read'],
  ]
  for (const [conversationId, body, ago, kind = 'visitor', state] of others) {
    const sessionId = conversationId.replace('cnv', 'ses')
    const contact =
      conversationId === 'cnv_p2k9' ? { leadId: 'lead_li', name: 'Li Wei', email: 'li@example.net' } : undefined
    conversations.add({ conversationId, sessionId, contact })
    conversations.past(conversationId, kind, body, ago, state)
    visitors.addSession({ sessionId, conversationId, visitorId: conversationId.replace('cnv', 'vis') })
  }
  conversations.setPresence('cnv_maria', Presence.HERE)
  conversations.setPresence('cnv_x7f3', Presence.AWAY)
  conversations.assign('cnv_m4t1', 'Jonas')
  conversations.add({ conversationId: 'cnv_done', sessionId: 'ses_done' })
  conversations.past('cnv_done', 'visitor', 'All is well now, goodbye', 7000, 'read')
  conversations.close('cnv_done')
  visitors.addSession({ sessionId: 'ses_done', conversationId: 'cnv_done', visitorId: 'vis_done' })

  workspace.addConnection({ connectionId: 'con_site', name: 'Website' })
  workspace.addInstallation({
    publicSiteKey: 'pk_shop',
    connectionId: 'con_site',
    origins: ['https://shop.example', 'https://*.shop.example'],
    appearance: {
      title: 'Alpine Outfitters',
      greeting: 'Hello! How can we help?',
      accentColor: '#1f6f5c',
      position: 'right',
    },
    capabilities: { identity: true, typing: true, pageContext: true, navigation: true, screenshots: true },
    defaultLocale: 'en',
    identityKeyIds: ['key_demo'],
    forms: { preChat: { fields: [{ name: 'email', label: 'Your e-mail', type: 'email', required: true }] } },
  })

  const spring = {
    addedBy: 'import@example.com',
    addedAt: at(3_000_000),
    reason: 'Unsubscribed from the spring newsletter',
  }
  for (let index = 1; index <= 120; index++)
    workspace.suppressions.add({ suppressionId: `spr_imported${index}`, kind: 'email', ...spring })
  workspace.addChange({ at: at(900_000), action: 'CreateInstallation', target: 'pk_shop' })
  workspace.addChange({
    at: at(9_000),
    action: 'UpdateInstallation',
    target: 'pk_shop',
    settings: [
      { name: 'capabilities.typing', value: 'true' },
      { name: 'consent.policyVersion', value: '2026-11' },
      { name: 'origins', value: '["https://shop.example","https://*.shop.example"]' },
    ],
  })
  workspace.addChange({
    at: at(1_000),
    action: 'UpdateInstallation',
    target: 'pk_shop',
    actor: 'op_jonas',
    settings: [{ name: 'forms.offline', value: '{"fields":[{"name":"email","label":"Your e-mail","type":"email"}]}' }],
  })
  workspace.addChange({
    at: at(400),
    action: 'BanVisitor',
    target: 'ses_x7f3',
    actor: 'jonas@example.com',
    confirmed: false,
  })
  workspace.suppressions.add({ suppressionId: 'spr_Zm9vYmFy', kind: 'phone', addedAt: at(9_000) })
  workspace.suppressions.add({
    suppressionId: 'spr_c3ViamVjdA',
    kind: 'subject',
    reason: 'Asked on the phone not to be contacted',
    addedAt: at(400),
  })

  leads.addLead({
    leadId: 'lead_maria',
    source: 'pre-chat-form',
    fields: { name: 'Maria Huber', email: 'maria@example.org', message: 'Do you have it\nin green?' },
    conversationId: 'cnv_maria',
  })
  leads.addLead({ leadId: 'lead_li', source: 'offline-form', fields: { name: 'Li Wei', email: 'li@example.net' } })
  leads.addSubscription({
    subscriptionId: 'sub_crm',
    destinationUrl: 'https://crm.example.com/••••',
    disableAfterNotFound: 5,
    mappedFields: ['name', 'email'],
    automatic: true,
    policy: { types: ['lead.ready-for-delivery', 'message.unseen'] },
    headers: [{ name: 'x-tenant', masked: '••••' }],
    secrets: [
      { secretId: 'sec_2', masked: 'whsec_efgh••••', createdAt: at(500) },
      { secretId: 'sec_1', masked: 'whsec_abcd••••', createdAt: at(9_000), expiresAt: at(-80_000), active: true },
    ],
  })
  leads.addSubscription({
    subscriptionId: 'sub_old',
    destinationUrl: 'https://legacy.example.com/••••',
    disableAfterNotFound: 5,
    mappedFields: [],
    status: SubscriptionStatus.DISABLED,
    disabledReason: DisabledReason.REJECTED_AUTH,
    heldDeliveries: 3,
  })
  leads.addAudit({ actor: 'service', action: 'disabled', disabledReason: DisabledReason.REJECTED_AUTH })
  leads.addAudit({ actor: 'ada@example.com', action: 'created' })
  const eventType = 'lead.ready-for-delivery'
  const crm = { deliveryId: 'dlv_1', leadId: 'lead_maria', subscriptionId: 'sub_crm', eventType }
  leads.addAttempt({
    ...crm,
    status: DeliveryStatus.RETRY_SCHEDULED,
    responseClass: ResponseClass.SERVER_ERROR,
    responseText: '{"error":"The form was closed <b>today</b>"}',
    responseStatus: 503,
    durationMs: 240,
    createdAt: at(300),
  })
  leads.addAttempt({
    ...crm,
    attemptNumber: 2,
    status: DeliveryStatus.DEAD_LETTERED,
    responseClass: ResponseClass.NETWORK_ERROR,
    failureReason: FailureReason.CONNECTION_REFUSED,
    failurePhase: AttemptPhase.CONNECT,
    durationMs: 12,
    createdAt: at(120),
  })
  leads.addAttempt({
    deliveryId: 'dlv_2',
    leadId: 'lead_li',
    subscriptionId: 'sub_crm',
    status: DeliveryStatus.ACCEPTED,
    responseClass: ResponseClass.ACCEPTED,
    responseStatus: 202,
    durationMs: 85,
  })
}

/** Returns a valid image file. */
export const samplePicture = () => readFile(join(import.meta.dirname, '../../docs/images/demo-shop.png'))
