/**
 * Ignores strings with a space, which are parts of messages. Tests check the names and numbers in messages, which are
 * separate mutants; the wording may change.
 */
import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'words', {
    shouldIgnore(path) {
      const text = path.isStringLiteral() ? path.node.value : path.isTemplateLiteral() ? path.node.quasis.map(({ value }) => value.raw).join('') : '';
      return text.includes(' ') ? 'words for people' : undefined;
    },
  }),
];
