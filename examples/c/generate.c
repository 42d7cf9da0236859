/* Continues a text: cc generate.c $(pkg-config --cflags --libs attn_c) && ./a.out MODEL TEXT */
#include <attn/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(attn_status status, attn_error** error) {
  if (status == ATTN_OK) return;
  fprintf(stderr, "%s: %s\n", attn_status_name(status), attn_error_message(*error));
  attn_error_free(*error);
  exit(1);
}

static bool print_token(const attn_generated_token* token, void* count) {
  fwrite(token->text.data, 1, token->text.size, stdout);
  fflush(stdout);
  ++*(size_t*)count;
  return true; /* false ends the text */
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL TEXT\n", argv[0]);
    return 2;
  }
  attn_error* error = NULL;
  attn_text_model* model = NULL; /* a folder or a .gguf file */
  check(attn_text_model_load(argv[1], ATTN_WEIGHTS_AS_STORED, &model, &error), &error);

  const attn_text prompt = {argv[2], strlen(argv[2])};
  size_t count = 0;
  attn_generate_options options;
  attn_generate_options_init(&options);
  options.max_new_tokens = 24;
  options.on_token = print_token;
  options.user_data = &count;
  printf("%s", argv[2]);
  attn_tensors* results = NULL;
  check(attn_text_model_generate(model, &prompt, &options, &results, &error), &error);

  attn_text reason;
  attn_tensors_text(results, "finish_reason", 0, &reason);
  printf("\n\n%s after %zu tokens\n", reason.data, count);
  attn_tensors_free(results);
  attn_text_model_free(model);
  return 0;
}
