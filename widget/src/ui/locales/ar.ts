import type { WidgetTexts } from '../texts.ts'

const unread: Partial<Record<Intl.LDMLPluralRule, (count: number) => string>> = {
  one: () => 'رسالة واحدة غير مقروءة',
  two: () => 'رسالتان غير مقروءتين',
  few: (count) => `${count} رسائل غير مقروءة`,
}

export const texts: WidgetTexts = {
  title: 'تواصل معنا',
  greeting: 'مرحبًا! كيف يمكننا مساعدتك؟',
  openLauncher: 'فتح المحادثة',
  openLauncherUnread: (count) => {
    const counted = unread[new Intl.PluralRules('ar').select(count)]?.(count) ?? `${count} رسالة غير مقروءة`
    return `فتح المحادثة، ${counted}`
  },
  closePanel: 'إغلاق المحادثة',
  log: 'المحادثة',
  composerLabel: 'رسالتك',
  composerPlaceholder: 'اكتب رسالة…',
  send: 'إرسال الرسالة',
  online: 'نحن متصلون الآن',
  away: 'نحن غير متاحين الآن وسنرد عليك لاحقًا',
  connecting: 'جارٍ الاتصال…',
  reconnecting: 'انقطع الاتصال. جارٍ إعادة الاتصال…',
  ended: 'انتهت المحادثة',
  you: 'أنت',
  agent: 'الدعم',
  sending: 'جارٍ الإرسال…',
  retrying: 'لم تُرسَل بعد. جارٍ إعادة المحاولة…',
  sent: 'أُرسلت',
  delivered: 'تم التسليم',
  read: 'قُرئت',
  notSent: 'لم تُرسَل',
  retry: 'إعادة المحاولة',
  typing: (name) => `${name} يكتب الآن`,
  newMessages: 'رسائل جديدة',
  toLatest: 'الانتقال إلى أحدث رسالة',
  chattingWith: (name) => `أنت تتحدث مع ${name}`,
  loadingOlder: 'جارٍ تحميل الرسائل السابقة…',
  opensInNewTab: 'يُفتح في علامة تبويب جديدة',
  today: 'اليوم',
  yesterday: 'أمس',
  tooLong: (limit) => `الحد الأقصى لعدد الأحرف هو ${limit.toLocaleString('ar')}.`,
  outboxFull: 'هناك رسائل كثيرة في انتظار الإرسال.',
  startNew: 'بدء محادثة جديدة',
  endReasons: {
    'session.expired': 'انتهت مدة هذه المحادثة.',
    'session.closed': 'انتهت هذه المحادثة.',
    'session.revoked': 'أنهى الموقع هذه المحادثة.',
    'visitor.banned': 'لم يعد بإمكانك إرسال رسائل هنا.',
    'connection.disabled': 'المحادثة متوقفة حاليًا على هذا الموقع.',
    'replay.reset.required': 'يُرجى تسجيل الدخول مجددًا لمتابعة هذه المحادثة.',
    unavailable: 'المحادثة غير متاحة حاليًا.',
  },
}
