import { emailPartsOf } from '../../contract/contacts.ts'
import { escapeHtml } from '../../contract/html.ts'
import { directionOf, type MailTexts, mailTextsOf } from '../../contract/mail-texts.ts'
import { isOriginAllowed } from '../../contract/origins.ts'
import { createJobs } from '../concurrency/job.ts'
import { hasConsented } from '../consents/consents.ts'
import { stillUnseen } from '../conversations/unseen-messages.ts'
import { type Core, dateOf } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { normalEmail } from '../leads/contacts.ts'
import { contactOf, leadsOfConversations } from '../leads/leads.ts'
import type { Lead } from '../leads/model.ts'
import { findSuppressedLeads } from '../leads/suppressions.ts'
import type { ConversationDocument } from '../log/conversation-store.ts'
import type { LogEvent } from '../log-event.ts'
import { mailerOf } from '../mail/mailer.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import type { Session } from '../sessions/model.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { defaultAppearance, type Installation } from '../workspaces/model.ts'
import { findWorkspace, siteDirectoryOf } from '../workspaces/workspaces.ts'

const batch = 50
const maxLeads = 50
/** Maximum number of code points of all messages in one mail. */
const maxLength = 12_000
/** Pauses after refusals. After the last one, the mail counts as refused. */
const pausesMs = [60_000, 5 * 60_000, 30 * 60_000, 2 * 3_600_000, 8 * 3_600_000]
/** Pause after a failure of this service, so that one mail does not hold up the others. */
const failedPauseMs = 10 * 60_000

export const answerMailJobs = (core: Core) =>
  createJobs(core, { 'mails of unseen answers': [60_000, () => sendAnswerMails(core)] })

/**
 * Mails answers that no device has shown to visitors who left an address and agreed (contract, rule 41),
 * each at most once: one write claims it, and only a refusal of the server lets it be sent again.
 */
export async function sendAnswerMails(core: Core): Promise<number | undefined> {
  const mailer = mailerOf(core)
  if (!mailer.isEnabled) return undefined
  const due = { 'mail.dueAt': { $lte: dateOf(core) }, ...notErasing }
  const options = { projection: { workspaceId: 1, mail: 1, noMails: 1, lastSession: 1 }, hint: 'by_mail' }
  const found = await core.db.conversations.find(due, options).sort({ 'mail.dueAt': 1 }).limit(batch).toArray()
  if (found.length === 0) return undefined
  // If the server cannot be reached, the mails stay due.
  await mailer.verify()
  for (const conversation of found)
    await sendAnswers(core, conversation).catch(async ({ name }: Error) => {
      core.logger.warn({ conversationId: conversation._id, reason: name }, 'a mail to a visitor failed; will retry')
      const dueAt = dateOf(core, failedPauseMs)
      const same = { _id: conversation._id, 'mail.dueAt': conversation.mail!.dueAt }
      await core.db.conversations.updateOne(same, { $set: { 'mail.dueAt': dueAt } })
    })
  return found.length === batch ? 0 : undefined
}

async function sendAnswers(core: Core, conversation: ConversationDocument): Promise<void> {
  const { _id } = conversation
  const { messageId, dueAt, attempts } = conversation.mail!
  /** Returns false if another core, or the visitor, was faster. */
  async function settle(from: object, state: 'sending' | 'sent' | 'refused' | 'dropped' | 'waiting', dueInMs?: number) {
    const at = dateOf(core)
    const { modifiedCount } = await core.db.conversations.updateOne(
      { _id, 'mail.messageId': messageId, ...from },
      {
        $set: {
          'mail.state': state,
          'mail.at': at,
          'mail.dueAt': dueInMs === undefined ? undefined : dateOf(core, dueInMs),
        },
        ...(dueInMs === undefined && { $unset: { 'mail.dueAt': '' as const } }),
        ...(state === 'sending' && { $inc: { 'mail.attempts': 1 } }),
      },
    )
    return modifiedCount === 1
  }

  const waiting = { 'mail.dueAt': dueAt }
  const found = await mailOf(core, conversation)
  if (!found) return void (await settle(waiting, 'dropped'))
  if (!(await settle({ ...waiting, noMails: { $exists: false }, ...notErasing }, 'sending'))) {
    if (conversation.noMails) await settle(waiting, 'dropped')
    return
  }
  const sending = { 'mail.state': 'sending' }
  const suppressed = await findSuppressedLeads(core, [found.lead])
  if (suppressed.size > 0) return void (await settle(sending, 'dropped'))
  try {
    await mailerOf(core).send(found.mail)
    await settle(sending, 'sent')
  } catch (error) {
    const { responseCode, command, code } = error as { responseCode?: number; command?: string; code?: string }
    core.logger.warn(
      { conversationId: _id, reason: code, answer: responseCode },
      'a mail to a visitor was not accepted',
    )
    // Without an answer, the server may have accepted it.
    if (responseCode === undefined) return
    const isFinal = responseCode >= 500 && command === 'RCPT TO'
    const pauseMs = isFinal ? undefined : pausesMs[attempts]
    await settle(sending, pauseMs === undefined ? 'refused' : 'waiting', pauseMs)
  }
}

/**
 * Returns undefined if nothing is left to mail, the website mails nothing, or the visitor has not agreed.
 */
async function mailOf(core: Core, conversation: ConversationDocument) {
  const { _id: conversationId, workspaceId, lastSession, mail, noMails } = conversation
  const answers = noMails ? [] : await stillUnseen(core, conversationId)
  if (answers.length === 0) return undefined
  const [session] = lastSession ? await sessionStoreOf(core).find([lastSession.sessionId]) : []
  const site = session && (await siteDirectoryOf(core).installations.get(session.publicSiteKey))
  if (!site || site.mailUnseenAnswers === false || !hasConsented(session, site)) return undefined
  // Only forms count: the visitor has typed the address, to be answered there.
  const leads = await leadsOfConversations(core, [conversationId], maxLeads)
  const lead = leads.find((each) => each.formSubmissionId !== undefined && addressOf(each) !== undefined)
  if (!lead) return undefined
  const { language, texts } = mailTextsOf(session.locale, site.defaultLocale)
  const siteName = nameOf(site, language) ?? (await findWorkspace(core, workspaceId)).name
  const stopUrl = `${core.config.PUBLIC_URL}/mail/${language}/${core.secretBox.seal(tokenPrefix + conversationId)}`
  const parts = {
    siteName,
    language,
    texts,
    messages: shownOf(answers, texts),
    pageUrl: pageOf(session, site),
    stopUrl,
  }
  return {
    lead,
    mail: {
      to: addressOf(lead)!,
      fromName: siteName,
      subject: texts.subject(siteName),
      text: textOf(parts),
      html: htmlOf(parts),
      messageId: mail!.messageId,
      unsubscribeUrl: stopUrl,
    },
  }
}

const addressOf = (lead: Lead) => {
  const { email = '' } = contactOf(lead) ?? {}
  return normalEmail(email) && emailPartsOf(email)!.address
}

/** Returns the website's title, unless it is the default. */
function nameOf({ appearance: { title, translations = {} } }: Installation, language: string) {
  const translated = Object.entries(translations).find(([tag]) => tag.toLowerCase().split('-')[0] === language)
  const name = translated?.[1].title ?? title
  return name === defaultAppearance.title ? undefined : name
}

/** The page on which the visitor was, or the website's first origin. */
function pageOf({ pageContext, origin }: Session, { origins }: Installation) {
  const url = pageContext?.url
  if (url !== undefined && isOriginAllowed(new URL(url).origin, origins)) return url
  return isOriginAllowed(origin, origins) ? origin : undefined
}

interface Parts {
  siteName: string
  language: string
  texts: MailTexts
  messages: { name: string; body: string }[]
  pageUrl: string | undefined
  stopUrl: string
}

/** Returns messages with at most `maxLength` code points of text. */
function shownOf(answers: LogEvent[], texts: MailTexts) {
  let left = maxLength
  return answers.flatMap(({ message }) => {
    if (left <= 0) return []
    const { kind, displayName = '' } = message!.author
    const points = [...message!.body]
    const body = points.length > left ? `${points.slice(0, left).join('')}…` : message!.body
    left -= points.length
    return [{ name: kind === 'bot' ? `${displayName} (${texts.assistant})` : displayName, body }]
  })
}

const textOf = ({ siteName, texts, messages, pageUrl, stopUrl }: Parts) =>
  [
    texts.intro(siteName),
    ...messages.map(({ name, body }) => (name ? `${name}:\n${body}` : body)),
    ...(pageUrl ? [`${texts.open}: ${pageUrl}`] : []),
    texts.noReply,
    `${texts.stop}: ${stopUrl}`,
  ]
    .join('\n\n')
    .concat('\n')

function htmlOf({ siteName, language, texts, messages, pageUrl, stopUrl }: Parts) {
  const link = (url: string, text: string) => `<a href="${escapeHtml(url)}">${escapeHtml(text)}</a>`
  return [
    `<!doctype html><html lang="${language}" dir="${directionOf(language)}"><head><meta charset="utf-8">`,
    `<title>${escapeHtml(texts.subject(siteName))}</title></head><body style="font-family:sans-serif">`,
    `<p>${escapeHtml(texts.intro(siteName))}</p>`,
    ...messages.flatMap(({ name, body }) => [
      `<p dir="auto"><b>${escapeHtml(name)}</b></p>`,
      `<blockquote dir="auto" style="white-space:pre-wrap">${escapeHtml(body)}</blockquote>`,
    ]),
    ...(pageUrl ? [`<p>${link(pageUrl, texts.open)}</p>`] : []),
    `<p><small>${escapeHtml(texts.noReply)}<br>${link(stopUrl, texts.stop)}</small></p></body></html>`,
  ].join('\n')
}

const tokenPrefix = 'mails '

/** Stops the mails of a mail's link. Errors: `NotFound` for an invalid token. */
export async function stopMails(core: Core, token: string) {
  const refused = new ServiceError('NotFound')
  const plain = opened(core, token)
  if (!plain?.startsWith(tokenPrefix)) throw refused
  const _id = plain.slice(tokenPrefix.length)
  const { matchedCount } = await core.db.conversations.updateOne({ _id, ...notErasing }, { $set: { noMails: true } })
  if (matchedCount === 0) throw refused
}

function opened({ secretBox }: Core, token: string) {
  try {
    return secretBox.open(token)
  } catch {
    return undefined
  }
}
