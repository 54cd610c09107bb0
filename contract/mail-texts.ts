/** Texts of the mails that visitors get, and of the page that stops them. Names may be in any script. */
export interface MailTexts {
  subject: (site: string) => string
  /** Stands above the messages. */
  intro: (site: string) => string
  open: string
  noReply: string
  stop: string
  stopped: string
  /** Follows the name of a bot. */
  assistant: string
}

const english: MailTexts = {
  subject: (site) => `New answer from ${site}`,
  intro: (site) => `You have an answer in the chat of ${site}:`,
  open: 'Open the chat',
  noReply: 'Please do not reply to this mail. Replies do not reach the chat.',
  stop: 'No more mails for this conversation',
  stopped: 'You will get no more mails for this conversation.',
  assistant: 'Assistant',
}

/** By language. */
const mailTexts = {
  en: english,
  de: {
    subject: (site) => `Neue Antwort von ${site}`,
    intro: (site) => `Im Chat von ${site} gibt es eine Antwort auf Ihre Nachricht:`,
    open: 'Chat öffnen',
    noReply: 'Bitte antworten Sie nicht auf diese E-Mail. Antworten kommen im Chat nicht an.',
    stop: 'Keine weiteren E-Mails zu diesem Gespräch',
    stopped: 'Sie erhalten keine weiteren E-Mails zu diesem Gespräch.',
    assistant: 'Assistent',
  },
  es: {
    subject: (site) => `Nueva respuesta de ${site}`,
    intro: (site) => `Tiene una respuesta en el chat de ${site}:`,
    open: 'Abrir el chat',
    noReply: 'No responda a este correo. Las respuestas no llegan al chat.',
    stop: 'No recibir más correos de esta conversación',
    stopped: 'No recibirá más correos de esta conversación.',
    assistant: 'Asistente',
  },
  fr: {
    subject: (site) => `Nouvelle réponse de ${site}`,
    intro: (site) => `Vous avez une réponse dans le chat de ${site} :`,
    open: 'Ouvrir le chat',
    noReply: 'Ne répondez pas à cet e-mail. Les réponses n’arrivent pas dans le chat.',
    stop: 'Ne plus recevoir d’e-mails pour cette conversation',
    stopped: 'Vous ne recevrez plus d’e-mails pour cette conversation.',
    assistant: 'Assistant',
  },
  ar: {
    subject: (site) => `رد جديد من ${site}`,
    intro: (site) => `لديك رد في محادثة ${site}:`,
    open: 'فتح المحادثة',
    noReply: 'يرجى عدم الرد على هذه الرسالة. الردود لا تصل إلى المحادثة.',
    stop: 'إيقاف الرسائل البريدية لهذه المحادثة',
    stopped: 'لن تصلك رسائل بريدية أخرى لهذه المحادثة.',
    assistant: 'المساعد',
  },
  ja: {
    subject: (site) => `${site}からの新しい返信`,
    intro: (site) => `${site}のチャットに返信があります。`,
    open: 'チャットを開く',
    noReply: 'このメールには返信しないでください。返信はチャットに届きません。',
    stop: 'この会話のメールを停止する',
    stopped: 'この会話のメールは今後送信されません。',
    assistant: 'アシスタント',
  },
} satisfies Record<string, MailTexts>

/** Returns the texts of the first of these locales whose language has texts; the English ones if none has. */
export function mailTextsOf(...locales: (string | undefined)[]): { language: string; texts: MailTexts } {
  const languages = locales.map((locale = '') => locale.toLowerCase().split(/[-_]/)[0]!)
  const language = languages.find((each) => Object.hasOwn(mailTexts, each)) ?? 'en'
  return { language, texts: mailTexts[language as keyof typeof mailTexts] }
}

export const directionOf = (language: string): 'ltr' | 'rtl' => (language === 'ar' ? 'rtl' : 'ltr')
