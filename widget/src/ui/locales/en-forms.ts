import type { FormTexts } from '../texts.ts'

export const englishFormTexts: FormTexts = {
  preChatTitle: 'Before we start',
  preChatIntro: 'A few details help us to answer you well.',
  offlineTitle: 'We are away at the moment',
  offlineIntro: 'Leave us your details and we will get back to you.',
  optional: 'optional',
  fieldProblems: {
    required: 'Please fill this in.',
    email: 'Please enter an email address like name@example.com.',
    tel: 'Please enter a phone number, digits only.',
    other: 'This is not accepted here. Please change it.',
    maxLength: (limit) => `Please keep it to ${limit} characters.`,
  },
  formFailed: 'Your details were not sent. Please try again.',
  formSuppressed: 'We cannot contact you at these details. Please write a message instead.',
  submitPreChat: 'Start chat',
  submitOffline: 'Send details',
  submitting: 'Sending…',
  skipForm: 'Skip',
  writeInstead: 'Write a message instead',
}
