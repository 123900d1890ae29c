/* The gRPC module: libprotobuf behind a table of C functions (grpc_codec.h). Messages of services
 * are known only at run time, by their descriptors. What comes from a service is hostile until it
 * is parsed; no exception leaves a function of the table. */
#include "worker/services/grpc_codec.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <memory>
#include <new>
#include <set>
#include <string>

namespace pb = google::protobuf;

namespace {

const char *const kPrefix = "type.googleapis.com";

/* The messages that Perdura itself exchanges with services; both versions of reflection look like
 * this. */
const char *const kOwn = R"(
name: "perdura.proto" package: "perdura" syntax: "proto3"
message_type { name: "Ask"
  field { name: "file" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "symbol" number: 4 label: LABEL_OPTIONAL type: TYPE_STRING } }
message_type { name: "Files"
  field { name: "file" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
message_type { name: "Refusal"
  field { name: "code" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 }
  field { name: "message" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING } }
message_type { name: "Answer"
  field { name: "files" number: 4 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: "Files" }
  field { name: "refusal" number: 7 label: LABEL_OPTIONAL type: TYPE_MESSAGE
          type_name: "Refusal" } }
message_type { name: "Any"
  field { name: "type_url" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_BYTES } }
message_type { name: "Status"
  field { name: "details" number: 3 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: "Any" } }
message_type { name: "Duration"
  field { name: "seconds" number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 }
  field { name: "nanos" number: 2 label: LABEL_OPTIONAL type: TYPE_INT32 } }
message_type { name: "RetryInfo"
  field { name: "delay" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE
          type_name: "Duration" } }
message_type { name: "Health"
  field { name: "status" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 } }
)";

pb::StringPiece piece(struct grpc_bytes bytes)
{
    return pb::StringPiece(bytes.data, bytes.len);
}

std::string text(struct grpc_bytes bytes)
{
    return std::string(bytes.data ? bytes.data : "", bytes.len);
}

bool put(const struct grpc_sink *sink, const std::string &value)
{
    return sink->put(sink->ctx, value.data(), value.size());
}

class Own {
public:
    Own() : factory_(&pool_)
    {
        pb::FileDescriptorProto file;

        if (pb::TextFormat::ParseFromString(kOwn, &file))
            file_ = pool_.BuildFile(file);
    }
    std::unique_ptr<pb::Message> make(const char *name)
    {
        const pb::Descriptor *type = file_ ? file_->FindMessageTypeByName(name) : nullptr;

        return std::unique_ptr<pb::Message>(type ? factory_.GetPrototype(type)->New() : nullptr);
    }
    /* NULL for bytes that are no such message. */
    static std::unique_ptr<Own> read(const char *name, struct grpc_bytes bytes)
    {
        auto own = std::make_unique<Own>();

        own->read_ = own->make(name);
        if (!own->read_ || !own->read_->ParseFromArray(bytes.data, static_cast<int>(bytes.len)))
            return nullptr;
        return own;
    }
    const pb::Message &message() const { return *read_; }

private:
    pb::DescriptorPool pool_;
    pb::DynamicMessageFactory factory_;
    const pb::FileDescriptor *file_ = nullptr;
    std::unique_ptr<pb::Message> read_; /* gone before its factory */
};

/* Reading of a field by its name: the messages are small and rare. */
struct Field {
    const pb::Message &of;
    const pb::FieldDescriptor *field;

    Field(const pb::Message &message, const char *name)
        : of(message), field(message.GetDescriptor()->FindFieldByName(name)) {}
    bool has() const { return of.GetReflection()->HasField(of, field); }
    const pb::Message &message() const { return of.GetReflection()->GetMessage(of, field); }
    const pb::Message &message(int at) const
    {
        return of.GetReflection()->GetRepeatedMessage(of, field, at);
    }
    int count() const { return of.GetReflection()->FieldSize(of, field); }
    std::string text() const { return of.GetReflection()->GetString(of, field); }
    std::string text(int at) const { return of.GetReflection()->GetRepeatedString(of, field, at); }
    int32_t number() const { return of.GetReflection()->GetInt32(of, field); }
    int64_t long_number() const { return of.GetReflection()->GetInt64(of, field); }
};

void set_text(pb::Message *message, const char *name, const std::string &value)
{
    message->GetReflection()->SetString(message, message->GetDescriptor()->FindFieldByName(name),
                                        value);
}

/* The first word against a file; without it libprotobuf writes to the terminal. */
class Errors : public pb::DescriptorPool::ErrorCollector {
public:
    void AddError(const std::string &, const std::string &element, const pb::Message *,
                  ErrorLocation, const std::string &message) override
    {
        if (first.empty())
            first = element + ": " + message;
    }
    std::string first;
};

/* "(message.count): invalid value "x" for type TYPE_INT32": where it is, and what type it has, but
 * not the value, which may be nobody's business. */
std::string plain(const pb::util::Status &status)
{
    static const std::string value = ": invalid value ", type = " for type ", word = "TYPE_";
    std::string said(status.message().data(), status.message().size());
    size_t from = said.find(value), to = said.rfind(type);
    std::string kind;

    if (from == std::string::npos || to == std::string::npos || to < from)
        return said.substr(said.find_first_not_of(": "), 300);
    kind = said.substr(to + type.size());
    if (said.compare(from + value.size(), 9, "Starting ") == 0) /* then it is the field's name */
        return (from ? said.substr(0, from) : "(" + kind + ")") +
               ": the value is an object or a list where none belongs";
    if (kind.compare(0, word.size(), word) == 0) {
        kind = kind.substr(word.size());
        for (char &c : kind)
            c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
    }
    return (said.substr(0, from) + ": the value is no " + kind.substr(kind.rfind('/') + 1))
        .substr(0, 300);
}

} // namespace

struct grpc_schema {
    grpc_schema() : known(*pb::DescriptorPool::generated_pool()) { reset(); }

    void reset()
    {
        resolver.reset();
        factory.reset();
        pool.reset();
        merged = std::make_unique<pb::MergedDescriptorDatabase>(&files, &known);
        pool = std::make_unique<pb::DescriptorPool>(merged.get(), &errors);
        /* The reflection of some languages loses which file imports which. */
        pool->InternalDontEnforceDependencies();
        factory = std::make_unique<pb::DynamicMessageFactory>(pool.get());
        resolver.reset(pb::util::NewTypeResolverForDescriptorPool(kPrefix, pool.get()));
        errors.first.clear();
    }

    enum grpc_coded add(const pb::FileDescriptorProto &file, const struct grpc_sink *why)
    {
        if (names.count(file.name()))
            return GRPC_CODED;
        if (names.size() >= GRPC_FILES_MAX) {
            put(why, "there are more than " + std::to_string(GRPC_FILES_MAX) + " files");
            return GRPC_INVALID;
        }
        if (file.name().empty() || !files.Add(file)) {
            put(why, "two files have the same things in them");
            return GRPC_INVALID;
        }
        names.insert(file.name());
        for (const std::string &needed : file.dependency())
            wanted.insert(needed);
        return GRPC_CODED;
    }

    /* A file that others need, and that nobody has. */
    bool missing(std::string *name)
    {
        pb::FileDescriptorProto found;

        for (const std::string &needed : wanted)
            if (!names.count(needed) && !known.FindFileByName(needed, &found)) {
                *name = needed;
                return true;
            }
        return false;
    }

    const pb::MethodDescriptor *find(struct grpc_bytes method, const struct grpc_sink *why)
    {
        std::string name = text(method);
        size_t slash = name.rfind('/');
        const pb::MethodDescriptor *found;

        if (slash != std::string::npos)
            name[slash] = '.';
        errors.first.clear();
        found = pool->FindMethodByName(name);
        if (!found) {
            put(why, errors.first.empty() ? "there is no method " + text(method) : errors.first);
            return nullptr;
        }
        if (found->client_streaming() || found->server_streaming()) {
            put(why, "the method " + text(method) + " is a stream; only unary ones can be called");
            return nullptr;
        }
        return found;
    }

    Errors errors;
    pb::SimpleDescriptorDatabase files;
    pb::DescriptorPoolDatabase known; /* timestamps, durations and their like */
    std::set<std::string> names, wanted;
    std::unique_ptr<pb::MergedDescriptorDatabase> merged;
    std::unique_ptr<pb::DescriptorPool> pool;
    std::unique_ptr<pb::DynamicMessageFactory> factory;
    std::unique_ptr<pb::util::TypeResolver> resolver;
};

namespace {

/* What libprotobuf or memory throws ends here. */
template <typename Body> enum grpc_coded guarded(const struct grpc_sink *why, Body body)
{
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return GRPC_NO_MEMORY;
    } catch (const std::exception &error) {
        if (why)
            put(why, error.what());
        return GRPC_INVALID;
    } catch (...) {
        return GRPC_INVALID;
    }
}

struct grpc_schema *schema_new()
{
    try {
        return new grpc_schema;
    } catch (...) {
        return nullptr;
    }
}

void schema_free(struct grpc_schema *schema)
{
    delete schema;
}

/* The files are built when they are needed; a file that is wrong shall be found at once. */
enum grpc_coded build(struct grpc_schema *schema, const struct grpc_sink *why)
{
    std::string name;

    if (schema->missing(&name)) {
        put(why, "the file " + name + " is missing; make the set with --include_imports");
        return GRPC_INVALID;
    }
    schema->reset();
    for (const std::string &file : schema->names)
        if (!schema->pool->FindFileByName(file)) {
            put(why, schema->errors.first.empty() ? "the file " + file + " is wrong"
                                                  : schema->errors.first);
            return GRPC_INVALID;
        }
    return GRPC_CODED;
}

enum grpc_coded add_set(struct grpc_schema *schema, struct grpc_bytes bytes,
                        const struct grpc_sink *why)
{
    return guarded(why, [&] {
        pb::FileDescriptorSet set;

        if (!set.ParseFromArray(bytes.data, static_cast<int>(bytes.len)) || set.file_size() == 0) {
            put(why, "it is no FileDescriptorSet");
            return GRPC_INVALID;
        }
        for (const pb::FileDescriptorProto &file : set.file()) {
            enum grpc_coded added = schema->add(file, why);

            if (added != GRPC_CODED)
                return added;
        }
        return build(schema, why);
    });
}

enum grpc_coded ask(struct grpc_bytes symbol, struct grpc_bytes file, const struct grpc_sink *out)
{
    return guarded(nullptr, [&] {
        Own own;
        std::unique_ptr<pb::Message> message = own.make("Ask");

        if (file.len)
            set_text(message.get(), "file", text(file));
        else
            set_text(message.get(), "symbol", text(symbol));
        return put(out, message->SerializeAsString()) ? GRPC_CODED : GRPC_TOO_LARGE;
    });
}

enum grpc_coded add_files(struct grpc_schema *schema, const pb::Message &files,
                          const struct grpc_sink *why)
{
    Field bytes(files, "file");

    for (int i = 0; i < bytes.count(); i++) {
        pb::FileDescriptorProto file;
        enum grpc_coded added;

        if (!file.ParseFromString(bytes.text(i))) {
            put(why, "the service's reflection has a file that is no descriptor");
            return GRPC_INVALID;
        }
        added = schema->add(file, why);
        if (added != GRPC_CODED)
            return added;
    }
    return GRPC_CODED;
}

enum grpc_coded add_answer(struct grpc_schema *schema, struct grpc_bytes bytes,
                           const struct grpc_sink *more, const struct grpc_sink *why)
{
    return guarded(why, [&] {
        std::unique_ptr<Own> own = Own::read("Answer", bytes);
        size_t before = schema->names.size();
        enum grpc_coded added;
        std::string name;

        if (!own) {
            put(why, "the service's reflection answered with something that is no answer");
            return GRPC_INVALID;
        }
        if (!Field(own->message(), "files").has()) {
            put(why, "the service's reflection has no such thing: " +
                         Field(Field(own->message(), "refusal").message(), "message").text());
            return GRPC_NO_METHOD;
        }
        added = add_files(schema, Field(own->message(), "files").message(), why);
        if (added != GRPC_CODED)
            return added;
        if (schema->names.size() == before) {
            put(why, "the service's reflection does not have all files");
            return GRPC_INVALID;
        }
        if (schema->missing(&name))
            return put(more, name) ? GRPC_MORE : GRPC_TOO_LARGE;
        return build(schema, why);
    });
}

std::string url_of(const pb::Descriptor *type)
{
    return std::string(kPrefix) + "/" + type->full_name();
}

enum grpc_coded to_message(struct grpc_schema *schema, struct grpc_bytes method,
                           struct grpc_bytes json, bool ignore_unknown,
                           const struct grpc_sink *out, const struct grpc_sink *why)
{
    return guarded(why, [&] {
        const pb::MethodDescriptor *found = schema->find(method, why);
        pb::util::JsonParseOptions options;
        std::string message;

        if (!found)
            return GRPC_NO_METHOD;
        options.ignore_unknown_fields = ignore_unknown;
        pb::util::Status status = pb::util::JsonToBinaryString(
            schema->resolver.get(), url_of(found->input_type()), piece(json), &message, options);
        if (!status.ok()) {
            put(why, plain(status));
            return GRPC_NOT_FIT;
        }
        if (found->file()->syntax() == pb::FileDescriptor::SYNTAX_PROTO2) {
            std::unique_ptr<pb::Message> whole(
                schema->factory->GetPrototype(found->input_type())->New());

            if (!whole->ParsePartialFromString(message) || !whole->IsInitialized()) {
                put(why, "it lacks " + whole->InitializationErrorString());
                return GRPC_NOT_FIT;
            }
        }
        return put(out, message) ? GRPC_CODED : GRPC_TOO_LARGE;
    });
}

enum grpc_coded to_json(struct grpc_schema *schema, struct grpc_bytes method,
                        struct grpc_bytes message, const struct grpc_sink *out,
                        const struct grpc_sink *why)
{
    return guarded(why, [&] {
        const pb::MethodDescriptor *found = schema->find(method, why);
        std::string json;

        if (!found)
            return GRPC_NO_METHOD;
        /* The JSON writer alone would take bytes that are cut. */
        std::unique_ptr<pb::Message> parsed(schema->factory->GetPrototype(found->output_type())
                                                ->New());
        if (!parsed->ParseFromArray(message.data, static_cast<int>(message.len))) {
            put(why, "it is no " + found->output_type()->full_name());
            return GRPC_INVALID;
        }
        pb::util::Status status = pb::util::BinaryToJsonString(
            schema->resolver.get(), url_of(found->output_type()), text(message), &json);
        if (!status.ok()) {
            put(why, plain(status));
            return GRPC_INVALID;
        }
        return put(out, json) ? GRPC_CODED : GRPC_TOO_LARGE;
    });
}

int64_t delay_of(const pb::Message &info)
{
    const pb::Message &delay = Field(info, "delay").message();
    int64_t seconds = Field(delay, "seconds").long_number();
    int32_t nanos = Field(delay, "nanos").number();

    if (seconds < 0 || seconds > INT32_MAX || nanos < 0 || nanos > 999999999)
        return -1;
    return seconds * 1000 + (nanos + 999999) / 1000000;
}

int64_t retry_ms(struct grpc_bytes bytes)
{
    try {
        std::unique_ptr<Own> own = Own::read("Status", bytes);

        if (!own)
            return -1;
        Field details(own->message(), "details");
        for (int i = 0; i < details.count(); i++) {
            const std::string type = Field(details.message(i), "type_url").text();
            std::unique_ptr<pb::Message> info = own->make("RetryInfo");

            if (type.substr(type.rfind('/') + 1) == "google.rpc.RetryInfo" &&
                info->ParseFromString(Field(details.message(i), "value").text()))
                return delay_of(*info);
        }
    } catch (...) {
    }
    return -1;
}

int health(struct grpc_bytes bytes)
{
    try {
        std::unique_ptr<Own> own = Own::read("Health", bytes);

        return own ? Field(own->message(), "status").number() : -1;
    } catch (...) {
        return -1;
    }
}

} // namespace

extern "C" __attribute__((visibility("default"))) const struct grpc_codec *perdura_grpc_codec()
{
    static const struct grpc_codec codec = {
        GRPC_CODEC_VERSION, schema_new, schema_free, add_set,  ask,
        add_answer,         to_message, to_json,     retry_ms, health};

    pb::SetLogHandler(nullptr); /* it would write to the terminal */
    return &codec;
}
