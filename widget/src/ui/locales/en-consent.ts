import type { ConsentTexts } from '../texts.ts'

export const englishConsentTexts: ConsentTexts = {
  consentTitle: 'Your consent',
  consentExplained: 'We need your consent to process what you write here.',
  consentHolding: 'What you have sent waits until you decide.',
  consentPolicy: 'Read the privacy policy',
  consentAgree: 'I agree',
  consentDecline: 'Decline',
  consentSaving: 'Saving…',
  consentDeclined: 'You declined. You can read this chat. To write, please agree first.',
  consentReview: 'Decide again',
  consentFailed: 'Your decision was not saved. Please try again.',
}
